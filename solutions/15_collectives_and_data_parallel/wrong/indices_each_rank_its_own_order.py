# exercise: parallel.indices  fails: right  says: should be
import numpy as np


def indices(length, ranks, rank, seed, epoch):
    order = np.random.default_rng(seed + epoch + rank).permutation(length).tolist()
    total = -(-length // ranks) * ranks
    return [order[i % length] for i in range(rank, total, ranks)]
