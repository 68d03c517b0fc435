# exercise: neural.read_off  fails: right  says: first wrong: parabola


def read_off(f, kind):
    if kind == "plane":
        c = f(0, 0)
        return [f(1, 0) - c, f(0, 1) - c, c]
    c = f(0)
    slope = f(1) - c
    return [slope, c] if kind == "line" else [f(2) - f(1) - slope, slope, c]
