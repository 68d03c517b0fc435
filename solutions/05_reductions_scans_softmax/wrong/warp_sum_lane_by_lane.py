# exercise: parallel.warp_sum  fails: warp operations  says: naive
from numba import float32

from gpulab import cuda


@cuda.jit
def warp_sum(a, sums):
    i = cuda.grid(1)
    value = a[i] if i < a.size else float32(0)
    total = value
    for lane in range(1, 32):
        total += cuda.shfl_sync(0xFFFFFFFF, value, lane)
    if i % 32 == 0 and i < a.size:
        sums[i // 32] = total
