# exercise: formats.decode  fails: right  says: should be
import math


def decode(code, exponent, mantissa):
    sign = -1.0 if code >> (exponent + mantissa) else 1.0
    power, fraction = (code >> mantissa) & (2**exponent - 1), code & (2**mantissa - 1)
    if power == 2**exponent - 1:
        return math.nan if fraction else sign * math.inf
    return sign * ((power > 0) + fraction / 2**mantissa) * 2.0 ** (power - (2 ** (exponent - 1) - 1))
