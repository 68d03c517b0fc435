# exercise: basics.add_one  fails: right  says: 500 in blocks of 128
from numba import float32

from gpulab import cuda


@cuda.jit
def add_one(a, out):
    i = cuda.blockIdx.x * 256 + cuda.threadIdx.x
    if i < a.size:
        out[i] = a[i] + float32(1.0)
