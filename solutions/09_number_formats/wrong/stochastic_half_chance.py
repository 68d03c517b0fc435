# exercise: formats.stochastic  fails: right  says: should be
def stochastic(bits, noise):
    return (bits >> 16) + (1 if noise >= 0x8000 and bits & 0xFFFF else 0)
