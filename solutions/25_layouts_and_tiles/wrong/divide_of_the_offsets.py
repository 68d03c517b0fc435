# exercise: layout.divide  fails: right  says: should be
import math


def divide(a, size, stride):
    starts = [(stride, 1), (math.prod(length for length, _ in a) // (size * stride), size * stride)]
    return [[(size, stride)], [mode for mode in starts if mode[0] > 1]]
