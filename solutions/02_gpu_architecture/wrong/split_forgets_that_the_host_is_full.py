# exercise: arch.split  fails: right  says: more to the cpu's memory than it can hold


def split(weights, machine):
    if weights > machine["gpu_memory"] + machine["cpu_memory"]:
        return None
    together = machine["gpu_bandwidth"] + machine["link"]
    own = min(weights * machine["gpu_bandwidth"] / together, machine["gpu_memory"])
    return [own, max(own / machine["gpu_bandwidth"], (weights - own) / machine["link"])]
