# exercise: mixed.delayed  fails: right  says: should be
import math


def delayed(amaxes, length, largest):
    scales = [1.0] * len(amaxes)
    for k in range(1, len(amaxes)):
        if math.isfinite(amaxes[k - 1]) and amaxes[k - 1] > 0:
            scales[k] = largest / amaxes[k - 1]
    return scales
