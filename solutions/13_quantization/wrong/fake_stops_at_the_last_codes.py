# exercise: quant.fake  fails: right  says: should be
def fake(values, gradients, scale, zero, bits):
    last = 2**bits - 1
    codes = [min(max(round(x / scale) + zero, 0), last) for x in values]
    passed = [g if 0 < code < last else 0.0 for g, code in zip(gradients, codes)]
    return [[scale * (code - zero) for code in codes], passed]
