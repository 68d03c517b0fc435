# exercise: quant.clip  fails: right  says: one number
def clip(values, bits):
    return [min(values), max(values)]
