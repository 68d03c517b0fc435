# exercise: formats.stochastic  fails: right  says: should be
def stochastic(bits, noise):
    return bits >> 16
