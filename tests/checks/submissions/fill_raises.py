# toy.fill: host code with a mistake
def answer(a, out):
    rows, columns = a.shape
    blocks = rows // (columns - columns)
    print(blocks)
