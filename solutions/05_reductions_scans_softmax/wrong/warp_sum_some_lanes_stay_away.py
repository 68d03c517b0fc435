# exercise: parallel.warp_sum  fails: right  says: reads an inactive lane
from numba import float32

from gpulab import cuda


@cuda.jit
def warp_sum(a, sums):
    i = cuda.grid(1)
    if i < a.size:
        value = a[i]
        for distance in (16, 8, 4, 2, 1):
            value += cuda.shfl_down_sync(0xFFFFFFFF, value, distance)
        if i % 32 == 0:
            sums[i // 32] = value
