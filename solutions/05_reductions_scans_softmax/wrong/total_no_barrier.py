# exercise: parallel.total  fails: right  says: Race in kernel total
from numba import float32

from gpulab import cuda


@cuda.jit
def total(a, out):
    of_warps = cuda.shared.array(8, float32)
    t = cuda.threadIdx.x
    value = float32(0)
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        value += a[i]
    for distance in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, distance)
    if t % 32 == 0:
        of_warps[t // 32] = value
    if t == 0:
        value = float32(0)
        for w in range(8):
            value += of_warps[w]
        cuda.atomic.add(out, 0, value)
