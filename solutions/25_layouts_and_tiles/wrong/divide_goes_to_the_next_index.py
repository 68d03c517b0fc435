# exercise: layout.divide  fails: right  says: should be
import math


def compose(a, size, stride):
    picked = []
    for length, step in a:
        if stride >= length:
            stride //= length
            continue
        taken = min(length // stride, size)
        picked.append((taken, step * stride))
        size, stride = size // taken, 1
        if size == 1:
            break
    return picked


def divide(a, size, stride):
    tiles = math.prod(length for length, _ in a) // size
    return [compose(a, size, stride), compose(a, tiles, size)]
