# exercise: quant.affine  fails: right  says: should be
def affine(values, bits):
    low, high = min(0.0, *values), max(0.0, *values)
    scale = (high - low) / 2**bits or 1.0
    zero = round(-low / scale)
    return [scale, zero, [min(max(round(x / scale) + zero, 0), 2**bits - 1) for x in values]]
