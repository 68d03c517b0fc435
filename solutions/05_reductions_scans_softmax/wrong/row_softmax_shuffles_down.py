# exercise: parallel.row_softmax  fails: right  says: should be
import math

from numba import float32

from gpulab import cuda


@cuda.jit
def row_softmax(x, out):
    row, lane = cuda.grid(1) // 32, cuda.threadIdx.x % 32
    held = cuda.local.array(8, float32)
    if row < x.shape[0]:
        largest = float32(-math.inf)
        for k in range(8):
            column = lane + 32 * k
            held[k] = x[row, column] if column < x.shape[1] else float32(-math.inf)
            largest = max(largest, held[k])
        for distance in (16, 8, 4, 2, 1):
            largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, distance))
        whole = float32(0)
        for k in range(8):
            held[k] = math.exp(held[k] - largest)
            whole += held[k]
        for distance in (16, 8, 4, 2, 1):
            whole += cuda.shfl_down_sync(0xFFFFFFFF, whole, distance)
        for k in range(8):
            column = lane + 32 * k
            if column < x.shape[1]:
                out[row, column] = held[k] / whole
