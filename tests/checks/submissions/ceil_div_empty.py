# toy.ceil_div: the stub as released
def answer(n, size):
    pass
