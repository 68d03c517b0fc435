# exercise: quant.affine  fails: right  says: should be
def affine(values, bits):
    low, high = min(0.0, *values), max(0.0, *values)
    scale = (high - low) / (2**bits - 1) or 1.0
    zero = round(-low / scale)
    return [scale, zero, [round(x / scale) + zero for x in values]]
