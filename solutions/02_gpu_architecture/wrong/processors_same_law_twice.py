# exercise: arch.processors  fails: right  says: first wrong: mixed
from math import ceil


def processors(serial, target):
    if target <= 1:
        return [1, 1]
    left = 1 / target - serial
    amdahl = ceil((1 - serial) / left) if left > 0 else None
    return [amdahl, amdahl]
