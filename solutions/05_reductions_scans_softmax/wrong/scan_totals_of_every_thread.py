# exercise: parallel.scan  fails: shared wavefronts  says: naive
from numba import int32

from gpulab import cuda


@cuda.jit
def scan(a, out):
    sums = cuda.shared.array(256, int32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    lane, warp = t % 32, t // 32
    value = a[i] if i < a.size else int32(0)
    for distance in (1, 2, 4, 8, 16):
        left = cuda.shfl_up_sync(0xFFFFFFFF, value, distance)
        if lane >= distance:
            value += left
    sums[t] = value
    cuda.syncthreads()
    value = sums[t]
    for w in range(warp):
        value += sums[32 * w + 31] + 0 * sums[32 * w + lane]
    if i < a.size:
        out[i] = value
