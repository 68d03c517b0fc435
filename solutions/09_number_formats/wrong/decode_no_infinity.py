# exercise: formats.decode  fails: right  says: inf
def decode(code, exponent, mantissa):
    sign = -1.0 if code >> (exponent + mantissa) else 1.0
    power, fraction = (code >> mantissa) & (2**exponent - 1), code & (2**mantissa - 1)
    bias = 2 ** (exponent - 1) - 1
    return sign * ((power > 0) + fraction / 2**mantissa) * 2.0 ** (max(power, 1) - bias)
