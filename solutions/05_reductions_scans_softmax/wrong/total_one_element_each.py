# exercise: parallel.total  fails: right  says: should be
from numba import float32

from gpulab import cuda


@cuda.jit
def total(a, out):
    i = cuda.grid(1)
    value = a[i] if i < a.size else float32(0)
    for distance in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, distance)
    if cuda.threadIdx.x % 32 == 0:
        cuda.atomic.add(out, 0, value)
