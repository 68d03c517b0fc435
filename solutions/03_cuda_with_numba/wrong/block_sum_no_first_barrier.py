# exercise: basics.block_sum  fails: right  says: Race in kernel
from numba import float32

from gpulab import cuda


@cuda.jit
def block_sum(a, sums):
    s = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    s[t] = a[i] if i < a.size else float32(0.0)
    stride = 128
    while stride > 0:
        if t < stride:
            s[t] += s[t + stride]
        cuda.syncthreads()
        stride //= 2
    if t == 0:
        sums[cuda.blockIdx.x] = s[0]
