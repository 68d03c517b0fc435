# exercise: kv.quantise  fails: error of keys  says: largest numbers of K
import numpy as np


def quantise(k, v):
    found = []
    for x, axis in ((np.array(k), 1), (np.array(v), 1)):
        largest = np.abs(x).max(axis=axis, keepdims=True)
        scales = np.where(largest > 0, largest, 1) / 127
        found += [np.round(x / scales).astype(int).tolist(), scales.tolist()]
    return found
