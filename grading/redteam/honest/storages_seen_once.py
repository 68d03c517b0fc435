# how: a set of storages already counted, and itemsizes of NumPy
# exercise: quant.size
import numpy as np


def size(entries):
    seen, total = set(), 0
    for _, shape, dtype, storage in entries:
        if storage in seen:
            continue
        seen.add(storage)
        width = 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize
        total += int(np.prod(shape, dtype=np.int64)) * width
    return total
