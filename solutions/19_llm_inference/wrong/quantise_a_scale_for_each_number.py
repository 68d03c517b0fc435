# exercise: kv.quantise  fails: bytes  says: how many scales
import numpy as np


def quantise(k, v):
    found = []
    for x in (np.array(k), np.array(v)):
        found += [np.ones(x.shape, int).tolist(), x.tolist()]
    return found
