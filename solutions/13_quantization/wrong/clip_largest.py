# exercise: quant.clip  fails: error  says: naive
def clip(values, bits):
    return max(abs(x) for x in values)
