# exercise: basics.block_sum  fails: bank conflicts  says: naive
from numba import float32

from gpulab import cuda


@cuda.jit
def block_sum(a, sums):
    s = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    s[t] = a[i] if i < a.size else float32(0.0)
    cuda.syncthreads()
    stride = 1
    while stride < 256:
        k = 2 * stride * t
        if k < 256:
            s[k] += s[k + stride]
        cuda.syncthreads()
        stride *= 2
    if t == 0:
        sums[cuda.blockIdx.x] = s[0]
