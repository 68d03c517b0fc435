# exercise: scaling.polar  fails: matrix FLOPs  says: more rows
def polar(g):
    x = g / g.norm()
    for _ in range(5):
        square = x @ x.T
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x
