# exercise: basics.block_sum  fails: warp instructions  says: How many rounds
from numba import float32

from gpulab import cuda


@cuda.jit
def block_sum(a, sums):
    s = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    s[t] = a[i] if i < a.size else float32(0.0)
    cuda.syncthreads()
    if t == 0:
        total = float32(0.0)
        for j in range(256):
            total += s[j]
        sums[cuda.blockIdx.x] = total
