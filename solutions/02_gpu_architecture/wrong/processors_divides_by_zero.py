# exercise: arch.processors  fails: right  says: ZeroDivisionError
from math import ceil


def processors(serial, target):
    left = 1 / target - serial
    return [ceil((1 - serial) / left) if left >= 0 else None, ceil((target - serial) / (1 - serial))]
