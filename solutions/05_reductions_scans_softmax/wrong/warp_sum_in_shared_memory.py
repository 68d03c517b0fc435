# exercise: parallel.warp_sum  fails: shared memory  says: shared memory
from numba import float32

from gpulab import cuda


@cuda.jit
def warp_sum(a, sums):
    s = cuda.shared.array(256, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    lane = t % 32
    s[t] = a[i] if i < a.size else float32(0)
    cuda.syncwarp()
    for distance in (16, 8, 4, 2, 1):
        if lane < distance:
            s[t] += s[t + distance]
        cuda.syncwarp()
    if lane == 0 and i < a.size:
        sums[i // 32] = s[t]
