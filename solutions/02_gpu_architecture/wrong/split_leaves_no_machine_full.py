# exercise: arch.split  fails: right  says: first wrong: full


def split(weights, machine):
    if weights >= machine["gpu_memory"] + machine["cpu_memory"]:
        return None
    together = machine["gpu_bandwidth"] + machine["link"]
    own = max(weights * machine["gpu_bandwidth"] / together, weights - machine["cpu_memory"])
    own = min(own, machine["gpu_memory"])
    return [own, max(own / machine["gpu_bandwidth"], (weights - own) / machine["link"])]
