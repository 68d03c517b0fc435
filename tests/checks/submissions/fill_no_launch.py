# toy.fill: does nothing
def answer(a, out):
    pass
