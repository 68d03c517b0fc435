# how: a floor division in place of a shift
# exercise: formats.stochastic
def stochastic(bits, noise):
    total = bits + noise
    return total // 65536
