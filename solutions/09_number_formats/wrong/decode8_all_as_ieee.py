# exercise: formats.decode8  fails: right  says: should be
import math


def decode8(code, variant):
    exponent, mantissa = int(variant[1]), int(variant[3])
    sign = -1.0 if code & 0x80 else 1.0
    power, fraction = (code & 0x7F) >> mantissa, code & (2**mantissa - 1)
    if power == 2**exponent - 1:
        return math.nan if fraction else sign * math.inf
    bias = 2 ** (exponent - 1) - 1
    return sign * ((power > 0) + fraction / 2**mantissa) * 2.0 ** (max(power, 1) - bias)
