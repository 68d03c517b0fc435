# exercise: memory.copy  fails: right  says: never written
from gpulab import cuda


@cuda.jit
def copy(a, b):
    i = cuda.grid(1)
    if i < a.size:
        b[i] = a[i]
