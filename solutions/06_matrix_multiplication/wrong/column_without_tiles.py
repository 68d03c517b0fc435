# exercise: gemm.column  fails: loaded bytes  says: 12,582,912 B
import numpy as np

from gpulab import cuda


@cuda.jit
def column(a, b, c):
    col = cuda.blockIdx.x * 64 + cuda.threadIdx.x
    for i in range(8):
        row = cuda.blockIdx.y * 64 + cuda.threadIdx.y + 8 * i
        if row < c.shape[0] and col < c.shape[1]:
            total = np.float32(0)
            for k in range(a.shape[1]):
                total += a[row, k] * b[k, col]
            c[row, col] = total
