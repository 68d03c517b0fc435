# exercise: basics.add_one  fails: sectors in all  says: 4 × what the elements need
from numba import float32

from gpulab import cuda


@cuda.jit
def add_one(a, out):
    for i in range(cuda.threadIdx.x, a.size, cuda.blockDim.x):
        out[i] = a[i] + float32(1.0)
