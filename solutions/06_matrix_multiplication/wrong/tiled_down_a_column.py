# exercise: gemm.tiled  fails: bank conflicts  says: 186,240 wavefronts
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
        a_tile[tx, ty] = a[row, first + tx] if row < a.shape[0] and first + tx < depth else np.float32(0)
        b_tile[ty, tx] = b[first + ty, col] if col < b.shape[1] and first + ty < depth else np.float32(0)
        cuda.syncthreads()
        for k in range(32):
            total += a_tile[k, ty] * b_tile[k, tx]
        cuda.syncthreads()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = total
