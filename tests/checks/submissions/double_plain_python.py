# toy.double: no kernel
def answer(a, out):
    for i in range(len(a)):
        out[i] = 2 * a[i]
