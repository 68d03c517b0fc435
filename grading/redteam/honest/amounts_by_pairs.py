# how: itertools.pairwise over the sparsities with a zero in front
# exercise: compress.amounts
from itertools import chain, pairwise


def amounts(sparsities):
    return [
        (after - before) / (1 - before) if before != 1 else 0.0
        for before, after in pairwise(chain([0.0], sparsities))
    ]
