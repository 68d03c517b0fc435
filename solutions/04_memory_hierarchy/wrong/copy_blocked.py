# exercise: memory.copy  fails: load sectors  says: 65,536 sectors
from gpulab import cuda


@cuda.jit
def copy(a, b):
    share = (a.size + cuda.gridsize(1) - 1) // cuda.gridsize(1)
    first = cuda.grid(1) * share
    for i in range(first, min(first + share, a.size)):
        b[i] = a[i]
