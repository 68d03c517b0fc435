# exercise: parallel.row_softmax  fails: loaded bytes  says: naive
import math

from numba import float32

from gpulab import cuda


@cuda.jit
def row_softmax(x, out):
    row, lane = cuda.grid(1) // 32, cuda.threadIdx.x % 32
    if row < x.shape[0]:
        largest = float32(-math.inf)
        for column in range(lane, x.shape[1], 32):
            largest = max(largest, x[row, column])
        for distance in (16, 8, 4, 2, 1):
            largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, distance))
        whole = float32(0)
        for column in range(lane, x.shape[1], 32):
            whole += math.exp(x[row, column] - largest)
        for distance in (16, 8, 4, 2, 1):
            whole += cuda.shfl_xor_sync(0xFFFFFFFF, whole, distance)
        for column in range(lane, x.shape[1], 32):
            out[row, column] = math.exp(x[row, column] - largest) / whole
