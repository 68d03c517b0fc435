# exercise: gemm.tiled  fails: right  says: 40 × 5 × 33
import numpy as np

from gpulab import cuda


@cuda.jit
def tiled(a, b, c):
    a_tile = cuda.shared.array((32, 32), np.float32)
    b_tile = cuda.shared.array((32, 32), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    depth = a.shape[1]
    total = np.float32(0)
    for first in range(0, depth, 32):
        a_tile[ty, tx] = a[row, first + tx] if row < a.shape[0] and first + tx < depth else np.float32(0)
        if col < b.shape[1] and first + ty < depth:
            b_tile[ty, tx] = b[first + ty, col]
        cuda.syncthreads()
        for k in range(32):
            total += a_tile[ty, k] * b_tile[k, tx]
        cuda.syncthreads()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = total
