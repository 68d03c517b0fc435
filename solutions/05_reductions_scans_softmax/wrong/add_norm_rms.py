# exercise: parallel.add_norm  fails: right  says: should be
import math

from numba import float32

from gpulab import cuda


@cuda.jit
def add_norm(x, residual, weight, summed, out):
    row, lane = cuda.grid(1) // 32, cuda.threadIdx.x % 32
    columns = x.shape[1]
    held = cuda.local.array(8, float32)
    if row < x.shape[0]:
        square = float32(0)
        for k in range(8):
            column = lane + 32 * k
            held[k] = float32(0)
            if column < columns:
                held[k] = x[row, column] + residual[row, column]
                summed[row, column] = held[k]
            square += held[k] * held[k]
        for distance in (16, 8, 4, 2, 1):
            square += cuda.shfl_xor_sync(0xFFFFFFFF, square, distance)
        scale = float32(1) / math.sqrt(square / float32(columns) + float32(1e-5))
        for k in range(8):
            column = lane + 32 * k
            if column < columns:
                out[row, column] = held[k] * scale * weight[column]
