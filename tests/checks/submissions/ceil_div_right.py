# toy.ceil_div: right
def answer(n, size):
    return -(-n // size)
