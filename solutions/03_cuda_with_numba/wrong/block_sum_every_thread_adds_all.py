# exercise: basics.block_sum  fails: bytes loaded  says: loaded 256 times
from numba import float32

from gpulab import cuda


@cuda.jit
def block_sum(a, sums):
    first = cuda.blockIdx.x * 256
    total = float32(0.0)
    for i in range(first, min(first + 256, a.size)):
        total += a[i]
    if cuda.threadIdx.x == 0:
        sums[cuda.blockIdx.x] = total
