# exercise: scaling.polar  fails: right  says: should be
def polar(g):
    tall = g.shape[0] > g.shape[1]
    x = g.T if tall else g
    x = x / x.norm()
    for _ in range(4):
        square = x @ x.T
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x.T if tall else x
