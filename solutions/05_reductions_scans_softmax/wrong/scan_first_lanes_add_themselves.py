# exercise: parallel.scan  fails: right  says: should be
from numba import int32

from gpulab import cuda


@cuda.jit
def scan(a, out):
    of_warps = cuda.shared.array(8, int32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    lane, warp = t % 32, t // 32
    value = a[i] if i < a.size else int32(0)
    for distance in (1, 2, 4, 8, 16):
        value += cuda.shfl_up_sync(0xFFFFFFFF, value, distance)
    if lane == 31:
        of_warps[warp] = value
    cuda.syncthreads()
    for w in range(warp):
        value += of_warps[w]
    if i < a.size:
        out[i] = value
