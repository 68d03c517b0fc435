# exercise: gemm.tiled  fails: loaded bytes  says: 15,728,640 B
import numpy as np

from gpulab import cuda


@cuda.jit
def tiled(a, b, c):
    col, row = cuda.grid(2)
    if row < c.shape[0] and col < c.shape[1]:
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, col]
        c[row, col] = total
