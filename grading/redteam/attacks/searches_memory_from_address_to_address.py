# how: a pointer made from a number, which walks down from its own array
# exercise: memory.copy
# earns: 0
# says: outofbounds
@cuda.jit
def copy(a, b):
    i = cuda.grid(1)
    if i < a.size:
        b[i] = a[i - 4096 * (i + 1)]
