# toy.ceil_div: returns what is no number
def answer(n, size):
    return (k for k in range(n, size))
