# how: np.ceil and named intermediate results, answered with NumPy's numbers
# exercise: cluster.train
import numpy as np


def train(model, gpu, days, lost):
    needed = np.float64(model["bytes_per_parameter"]) * model["parameters"]
    for_memory = needed / (gpu["memory"] * 0.8)
    flops = 6.0 * model["tokens"] * model["active"]
    per_second = gpu["peak"] * gpu["utilisation"] * (1.0 - lost)
    total_days = flops / per_second / (24 * 3600)
    for_time = total_days / days
    limit = "memory" if for_memory > for_time else "time"
    nodes = np.ceil(np.maximum(for_memory, for_time) / gpu["per_node"])
    gpus = int(nodes) * gpu["per_node"]
    return [gpus, limit, total_days / gpus]
