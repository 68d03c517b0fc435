# how: the exponent by frexp, and codes by a search among the midpoints of neighbouring numbers
# exercise: formats.block
from bisect import bisect_left, bisect_right
from math import copysign, frexp, ldexp

MIDPOINTS = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5]


def block(values):
    if not (largest := max(map(abs, values))):
        return [0, [8 * (copysign(1, v) < 0) for v in values]]
    power = frexp(largest)[1] - 3

    def code(v: float) -> int:
        x = ldexp(abs(v), -power)
        low, high = bisect_left(MIDPOINTS, x), bisect_right(MIDPOINTS, x)
        even = low if low == high or low % 2 == 0 else high
        return even | 8 * (copysign(1.0, v) < 0)

    return [power + 127, [*map(code, values)]]
