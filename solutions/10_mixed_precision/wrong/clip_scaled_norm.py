# exercise: mixed.clip  fails: right  says: should be
import math


def clip(gradients, scale, limit):
    if not all(math.isfinite(g) for g in gradients):
        return None
    norm = math.sqrt(sum(g * g for g in gradients))
    return [g * (limit / norm if norm > limit else 1) / scale for g in gradients]
