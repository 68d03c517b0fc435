# how: threads copy backwards, in another order than anybody would
# exercise: memory.copy
@cuda.jit
def copy(a, b):
    n = a.size
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        b[n - 1 - i] = a[n - 1 - i]
