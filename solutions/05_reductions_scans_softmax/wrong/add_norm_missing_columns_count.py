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
        mean = float32(0)
        for k in range(8):
            column = lane + 32 * k
            held[k] = float32(0)
            if column < columns:
                held[k] = x[row, column] + residual[row, column]
                summed[row, column] = held[k]
            mean += held[k]
        for distance in (16, 8, 4, 2, 1):
            mean += cuda.shfl_xor_sync(0xFFFFFFFF, mean, distance)
        mean /= float32(columns)
        variance = float32(0)
        for k in range(8):
            held[k] -= mean
            variance += held[k] * held[k]
        for distance in (16, 8, 4, 2, 1):
            variance += cuda.shfl_xor_sync(0xFFFFFFFF, variance, distance)
        scale = float32(1) / math.sqrt(variance / float32(columns) + float32(1e-5))
        for k in range(8):
            column = lane + 32 * k
            if column < columns:
                out[row, column] = held[k] * scale * weight[column]
