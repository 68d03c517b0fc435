# exercise: parallel.total  fails: global atomics  says: 64
from numba import float32

from gpulab import cuda


@cuda.jit
def total(a, out):
    value = float32(0)
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        value += a[i]
    for distance in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, distance)
    if cuda.threadIdx.x % 32 == 0:
        cuda.atomic.add(out, 0, value)
