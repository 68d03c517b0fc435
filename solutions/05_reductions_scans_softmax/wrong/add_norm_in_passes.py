# exercise: parallel.add_norm  fails: loaded bytes  says: naive
import math

from numba import float32

from gpulab import cuda


@cuda.jit
def add_norm(x, residual, weight, summed, out):
    row, lane = cuda.grid(1) // 32, cuda.threadIdx.x % 32
    columns = x.shape[1]
    if row < x.shape[0]:
        for column in range(lane, columns, 32):
            summed[row, column] = x[row, column] + residual[row, column]
        mean = float32(0)
        for column in range(lane, columns, 32):
            mean += summed[row, column]
        for distance in (16, 8, 4, 2, 1):
            mean += cuda.shfl_xor_sync(0xFFFFFFFF, mean, distance)
        mean /= float32(columns)
        variance = float32(0)
        for column in range(lane, columns, 32):
            difference = summed[row, column] - mean
            variance += difference * difference
        for distance in (16, 8, 4, 2, 1):
            variance += cuda.shfl_xor_sync(0xFFFFFFFF, variance, distance)
        scale = float32(1) / math.sqrt(variance / float32(columns) + float32(1e-5))
        for column in range(lane, columns, 32):
            out[row, column] = (summed[row, column] - mean) * scale * weight[column]
