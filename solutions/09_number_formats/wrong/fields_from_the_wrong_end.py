# exercise: formats.fields  fails: right  says: should be
def fields(code, exponent, mantissa):
    return [code & 1, (code >> 1) & ((1 << exponent) - 1), code >> (1 + exponent)]
