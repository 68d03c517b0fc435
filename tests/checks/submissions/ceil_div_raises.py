# toy.ceil_div: fails on the way
def answer(n, size):
    parts = [n] * 3
    return parts[size]
