# exercise: quant.allocate  fails: right  says: and the budget is
def allocate(sizes, errors, budget):
    bits, left = [2] * len(sizes), budget * len(sizes) // sum(sizes) - 2 * len(sizes)
    for i in sorted(range(len(sizes)), key=lambda i: errors[i][2] - errors[i][0]):
        if left >= 2:
            bits[i], left = 4, left - 2
    return bits
