# exercise: formats.decode8  fails: right  says: E4M3FNUZ
import math


def decode8(code, variant):
    exponent, mantissa = int(variant[1]), int(variant[3])
    sign = -1.0 if code & 0x80 else 1.0
    power, fraction = (code & 0x7F) >> mantissa, code & (2**mantissa - 1)
    if variant == "E5M2" and power == 31:
        return math.nan if fraction else sign * math.inf
    if (variant == "E4M3" and code & 0x7F == 0x7F) or (variant.endswith("FNUZ") and code == 0x80):
        return math.nan
    bias = 2 ** (exponent - 1) - 1
    return sign * ((power > 0) + fraction / 2**mantissa) * 2.0 ** (max(power, 1) - bias)
