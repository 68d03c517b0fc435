# how: np.resize repeats the order, and a slice takes the share of a rank
# exercise: parallel.indices
import numpy as np


def indices(length, ranks, rank, seed, epoch):
    rng = np.random.default_rng(epoch + seed)
    order = rng.permutation(length)
    per_rank = (length + ranks - 1) // ranks
    return np.resize(order, per_rank * ranks)[rank::ranks].tolist()
