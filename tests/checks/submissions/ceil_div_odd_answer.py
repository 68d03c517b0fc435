# toy.ceil_div: returns what is no number
def answer(n, size):
    return range(n, size)
