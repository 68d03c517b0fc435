# exercise: neural.read_off  fails: right  says: should be


def read_off(f, kind):
    if kind == "plane":
        c = f(0, 0)
        return [c, f(1, 0) - c, f(0, 1) - c]
    c = f(0)
    if kind == "line":
        return [c, f(1) - c]
    right, left = f(1), f(-1)
    return [c, (right - left) / 2, (right + left) / 2 - c]
