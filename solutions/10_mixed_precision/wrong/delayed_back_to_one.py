# exercise: mixed.delayed  fails: right  says: should be
import math


def delayed(amaxes, length, largest):
    scales = []
    for k in range(len(amaxes)):
        known = amaxes[max(0, k - length) : k]
        usable = known and all(math.isfinite(a) for a in known) and max(known) > 0
        scales.append(largest / max(known) if usable else 1.0)
    return scales
