# exercise: kv.quantise  fails: right  says: from −127 to 127
import numpy as np


def quantise(k, v):
    found = []
    for x, axis in ((np.array(k), 0), (np.array(v), 1)):
        largest = np.abs(x).max(axis=axis, keepdims=True)
        scales = np.where(largest > 0, largest, 1) / 128
        found += [np.round(x / scales).astype(int).tolist(), scales.tolist()]
    return found
