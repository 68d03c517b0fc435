# exercise: parallel.warp_sum  fails: load sectors  says: naive
from numba import float32

from gpulab import cuda


@cuda.jit
def warp_sum(a, sums):
    i = cuda.grid(1)
    if i % 32 == 0 and i < a.size:
        total = float32(0)
        for k in range(i, min(i + 32, a.size)):
            total += a[k]
        sums[i // 32] = total
