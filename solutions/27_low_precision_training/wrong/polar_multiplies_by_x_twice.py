# exercise: scaling.polar  fails: matrix FLOPs  says: how often
def polar(g):
    tall = g.shape[0] > g.shape[1]
    x = g.T if tall else g
    x = x / x.norm()
    for _ in range(5):
        once = (x @ x.T) @ x
        x = 3.4445 * x - 4.7750 * once + 2.0315 * (x @ x.T) @ once
    return x.T if tall else x
