# exercise: cluster.train  fails: right  says: first wrong: 20 tokens
from math import ceil


def train(model, gpu, days, lost):
    by_memory = model["bytes_per_parameter"] * model["parameters"] / (0.8 * gpu["memory"])
    gpu_days = 6 * model["active"] * model["tokens"] / gpu["peak"] / 86_400
    gpus = gpu["per_node"] * ceil(max(by_memory, gpu_days / days) / gpu["per_node"])
    return [gpus, "memory" if by_memory > gpu_days / days else "time", gpu_days / gpus]
