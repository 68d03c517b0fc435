# exercise: memory.copy  fails: load sectors, store sectors, sectors in all  says: That is 2 ×
from gpulab import cuda


@cuda.jit
def copy(a, b):
    for i in range(2 * cuda.grid(1), a.size, 2 * cuda.gridsize(1)):
        b[i] = a[i]
        if i + 1 < a.size:
            b[i + 1] = a[i + 1]
