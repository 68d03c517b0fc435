# how: NumPy arrays of three dimensions, reversed with a slice
# exercise: edge.launch
import numpy as np


def launch(api, threads, block, most):
    block, threads = np.array(block), np.array(threads)
    if block.prod() > most:
        return None
    groups = (threads + block - 1) // block
    match api:
        case "OpenCL":
            return [(groups * block).tolist(), block.tolist()]
        case "SYCL":
            return [(groups * block)[::-1].tolist(), block[::-1].tolist()]
        case _:
            return [groups.tolist(), block.tolist()]
