# exercise: parallel.indices  fails: right  says: should be
import numpy as np


def indices(length, ranks, rank, seed, epoch):
    return np.random.default_rng(seed + epoch).permutation(length).tolist()[rank::ranks]
