# exercise: memory.copy  fails: right  says: never written
from gpulab import cuda


@cuda.jit
def copy(a, b):
    step = cuda.gridsize(1)
    for k in range(a.size // step):
        b[cuda.grid(1) + k * step] = a[cuda.grid(1) + k * step]
