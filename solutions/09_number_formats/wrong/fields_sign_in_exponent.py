# exercise: formats.fields  fails: right  says: should be
def fields(code, exponent, mantissa):
    return [code >> (exponent + mantissa), code >> mantissa, code & ((1 << mantissa) - 1)]
