# exercise: cluster.train  fails: right  says: idle experts
from math import ceil


def train(model, gpu, days, lost):
    by_memory = model["bytes_per_parameter"] * model["active"] / (0.8 * gpu["memory"])
    rate = gpu["peak"] * gpu["utilisation"] * (1 - lost)
    gpu_days = 6 * model["active"] * model["tokens"] / rate / 86_400
    gpus = gpu["per_node"] * ceil(max(by_memory, gpu_days / days) / gpu["per_node"])
    return [gpus, "memory" if by_memory > gpu_days / days else "time", gpu_days / gpus]
