# exercise: basics.add_one  fails: right  says: no thread wrote
from numba import float32

from gpulab import cuda


@cuda.jit
def add_one(a, out):
    i = cuda.blockIdx.x * 32 + cuda.threadIdx.x  # a block is not a warp
    if i < a.size:
        out[i] = a[i] + float32(1.0)
