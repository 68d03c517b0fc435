# exercise: parallel.logsumexp  fails: load sectors  says: naive
import math

from numba import float32

from gpulab import cuda


@cuda.jit
def logsumexp(x, out):
    row, lane = cuda.grid(1) // 32, cuda.threadIdx.x % 32
    if row < x.shape[0]:
        m = float32(-math.inf)
        for column in range(lane, x.shape[1], 32):
            m = max(m, x[row, column])
        for distance in (16, 8, 4, 2, 1):
            m = max(m, cuda.shfl_xor_sync(0xFFFFFFFF, m, distance))
        s = float32(0)
        if m > float32(-math.inf):
            for column in range(lane, x.shape[1], 32):
                s += math.exp(x[row, column] - m)
        for distance in (16, 8, 4, 2, 1):
            s += cuda.shfl_xor_sync(0xFFFFFFFF, s, distance)
        if lane == 0:
            out[row] = m + math.log(s)
