# how: math.ldexp in place of powers of two
# exercise: formats.decode
import math


def decode(code, exponent, mantissa):
    fraction = code & ((1 << mantissa) - 1)
    power = (code >> mantissa) & ((1 << exponent) - 1)
    negative = bool(code >> (mantissa + exponent))
    bias = (1 << (exponent - 1)) - 1
    top = (1 << exponent) - 1
    if power == top and fraction:
        return float("nan")
    if power == top:
        value = float("inf")
    elif power:
        value = math.ldexp(fraction | (1 << mantissa), power - bias - mantissa)
    else:
        value = math.ldexp(fraction, 1 - bias - mantissa)
    return -value if negative else value
