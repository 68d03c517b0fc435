# exercise: mixed.clip  fails: right  says: should be
import math


def clip(gradients, scale, limit):
    real = [g / scale for g in gradients]
    if not all(math.isfinite(g) for g in real):
        return None
    return [max(-limit, min(limit, g)) for g in real]
