# exercise: formats.encode  fails: right  says: gives 0, should be
import math


def encode(x, exponent, mantissa):
    bias = 2 ** (exponent - 1) - 1
    infinity = (2**exponent - 1) << mantissa
    code = infinity
    if not math.isinf(x):
        power = max(math.frexp(x)[1] - 1, 1 - bias) if x else 1 - bias
        steps = round(abs(x) * 2.0 ** (mantissa - power))
        code = min(((power + bias - 1) << mantissa) + steps, infinity)
    return (x < 0) << (exponent + mantissa) | code
