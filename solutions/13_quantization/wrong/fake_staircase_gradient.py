# exercise: quant.fake  fails: right  says: should be
def fake(values, gradients, scale, zero, bits):
    last = 2**bits - 1
    codes = [min(max(round(x / scale) + zero, 0), last) for x in values]
    return [[scale * (code - zero) for code in codes], [0.0] * len(values)]
