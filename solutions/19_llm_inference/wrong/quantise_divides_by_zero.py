# exercise: kv.quantise  fails: right  says: zeros
import numpy as np


def quantise(k, v):
    found = []
    for x, axis in ((np.array(k), 0), (np.array(v), 1)):
        largest = np.abs(x).max(axis=axis, keepdims=True)
        scales = largest / 127
        found += [np.round(x / scales).astype(int).tolist(), scales.tolist()]
    return found
