# exercise: quant.allocate  fails: error  says: naive
def allocate(sizes, errors, budget):
    return [max(bits for bits in (2, 3, 4, 8) if bits * sum(sizes) <= budget)] * len(sizes)
