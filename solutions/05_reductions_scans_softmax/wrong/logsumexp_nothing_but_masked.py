# exercise: parallel.logsumexp  fails: right  says: nan
import math

from numba import float32

from gpulab import cuda


@cuda.jit
def logsumexp(x, out):
    row, lane = cuda.grid(1) // 32, cuda.threadIdx.x % 32
    if row < x.shape[0]:
        m, s = float32(-math.inf), float32(0)
        for column in range(lane, x.shape[1], 32):
            value = x[row, column]
            if value > m:
                s = s * math.exp(m - value) + float32(1)
                m = value
            else:
                s += math.exp(value - m)
        for distance in (16, 8, 4, 2, 1):
            other_m = cuda.shfl_xor_sync(0xFFFFFFFF, m, distance)
            other_s = cuda.shfl_xor_sync(0xFFFFFFFF, s, distance)
            both = max(m, other_m)
            s = s * math.exp(m - both) + other_s * math.exp(other_m - both)
            m = both
        if lane == 0:
            out[row] = m + math.log(s)
