# exercise: memory.copy  fails: load sectors, store sectors, sectors in all  says: 4 × what one copy
from gpulab import cuda


@cuda.jit
def copy(a, b):
    for i in range(cuda.threadIdx.x, a.size, cuda.blockDim.x):
        b[i] = a[i]
