# exercise: parallel.indices  fails: right  says: 3 samples, 8 ranks
import numpy as np


def indices(length, ranks, rank, seed, epoch):
    order = np.random.default_rng(seed + epoch).permutation(length).tolist()
    order += order[: -length % ranks]
    return order[rank::ranks]
