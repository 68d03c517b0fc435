# exercise: arch.split  fails: right  says: first wrong: fits


def split(weights, machine):
    if weights > machine["gpu_memory"] + machine["cpu_memory"]:
        return None
    own = min(weights, machine["gpu_memory"])
    return [own, max(own / machine["gpu_bandwidth"], (weights - own) / machine["link"])]
