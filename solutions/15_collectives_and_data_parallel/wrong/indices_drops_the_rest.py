# exercise: parallel.indices  fails: right  says: should be
import numpy as np


def indices(length, ranks, rank, seed, epoch):
    order = np.random.default_rng(seed + epoch).permutation(length).tolist()
    return order[: length // ranks * ranks][rank::ranks]
