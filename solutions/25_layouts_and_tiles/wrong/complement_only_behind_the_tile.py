# exercise: layout.complement  fails: right  says: should be
import math


def complement(tile, n):
    taken = math.prod(size for size, _ in tile)
    return [(n // taken, taken)] if n > taken else [(1, 0)]
