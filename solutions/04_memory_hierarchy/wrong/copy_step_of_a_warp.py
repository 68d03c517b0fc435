# exercise: memory.copy  fails: load sectors  says: number of all threads
from gpulab import cuda


@cuda.jit
def copy(a, b):
    for i in range(cuda.grid(1), a.size, 32):
        b[i] = a[i]
