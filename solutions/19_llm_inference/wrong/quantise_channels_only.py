# exercise: kv.quantise  fails: error of values  says: largest numbers of V
import numpy as np


def quantise(k, v):
    found = []
    for x, axis in ((np.array(k), 0), (np.array(v), 0)):
        largest = np.abs(x).max(axis=axis, keepdims=True)
        scales = np.where(largest > 0, largest, 1) / 127
        found += [np.round(x / scales).astype(int).tolist(), scales.tolist()]
    return found
