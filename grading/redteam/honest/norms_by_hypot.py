# how: math.hypot of all gradients, with an early return
# exercise: mixed.clip
import math


def clip(gradients, scale, limit):
    unscaled = []
    for gradient in gradients:
        value = gradient / scale
        if math.isnan(value) or math.isinf(value):
            return None
        unscaled.append(value)
    norm = math.hypot(*unscaled)
    factor = min(1.0, limit / norm) if norm else 1.0
    return [value * factor for value in unscaled]
