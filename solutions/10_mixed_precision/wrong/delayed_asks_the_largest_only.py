# exercise: mixed.delayed  fails: right  says: Ask of every amax whether it is finite
import math


def delayed(amaxes, length, largest):
    scales, scale = [], 1.0
    for k in range(len(amaxes)):
        known = amaxes[max(0, k - length) : k]
        if known and max(known) > 0 and math.isfinite(max(known)):
            scale = largest / max(known)
        scales.append(scale)
    return scales
