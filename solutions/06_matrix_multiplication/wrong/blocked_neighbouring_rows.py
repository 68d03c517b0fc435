# exercise: gemm.blocked  fails: bank conflicts  says: 32,256 wavefronts
import numpy as np

from gpulab import cuda


@cuda.jit
def blocked(a, b, c):
    a_tile = cuda.shared.array((64, 8), np.float32)
    b_tile = cuda.shared.array((8, 64), np.float32)
    sums = cuda.local.array((8, 8), np.float32)
    mine = cuda.local.array(8, np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    top, left = cuda.blockIdx.y * 64, cuda.blockIdx.x * 64
    m, n, depth = c.shape[0], c.shape[1], a.shape[1]
    for i in range(8):
        for j in range(8):
            sums[i, j] = 0
    t = ty * 8 + tx
    for first in range(0, depth, 8):
        for i in range(8):
            row, k = top + ty + 8 * i, first + tx
            a_tile[ty + 8 * i, tx] = a[row, k] if row < m and k < depth else np.float32(0)
            k, col = first + i, left + t
            b_tile[i, t] = b[k, col] if k < depth and col < n else np.float32(0)
        cuda.syncthreads()
        for k in range(8):
            for i in range(8):
                mine[i] = a_tile[8 * ty + i, k]
            for j in range(8):
                right = b_tile[k, tx + 8 * j]
                for i in range(8):
                    sums[i, j] += mine[i] * right
        cuda.syncthreads()
    for i in range(8):
        for j in range(8):
            row, col = top + 8 * ty + i, left + tx + 8 * j
            if row < m and col < n:
                c[row, col] = sums[i, j]
