# exercise: quant.affine  fails: right  says: should be
def affine(values, bits):
    low, high = min(values), max(values)
    last = 2**bits - 1
    scale = (high - low) / last or 1.0
    zero = round(-low / scale)
    return [scale, zero, [min(max(round(x / scale) + zero, 0), last) for x in values]]
