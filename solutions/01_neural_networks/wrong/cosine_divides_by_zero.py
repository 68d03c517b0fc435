# exercise: neural.cosine  fails: right  says: ZeroDivisionError
from math import sqrt


def cosine(u, v):
    dot = sum(x * y for x, y in zip(u, v))
    return dot / (sqrt(sum(x * x for x in u)) * sqrt(sum(y * y for y in v)))
