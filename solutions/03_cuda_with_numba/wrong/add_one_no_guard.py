# exercise: basics.add_one  fails: right  says: OutOfBounds
from numba import float32

from gpulab import cuda


@cuda.jit
def add_one(a, out):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    out[i] = a[i] + float32(1.0)
