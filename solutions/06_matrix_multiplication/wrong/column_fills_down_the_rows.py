# exercise: gemm.column  fails: load sectors  says: 27,648 sectors
import numpy as np

from gpulab import cuda


@cuda.jit
def column(a, b, c):
    a_tile = cuda.shared.array((64, 8), np.float32)
    b_tile = cuda.shared.array((8, 64), np.float32)
    sums = cuda.local.array(8, np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    top, left = cuda.blockIdx.y * 64, cuda.blockIdx.x * 64
    m, n, depth = c.shape[0], c.shape[1], a.shape[1]
    for i in range(8):
        sums[i] = 0
    t = ty * 64 + tx
    for first in range(0, depth, 8):
        row, k = top + t % 64, first + t // 64
        a_tile[t % 64, t // 64] = a[row, k] if row < m and k < depth else np.float32(0)
        k, col = first + ty, left + tx
        b_tile[ty, tx] = b[k, col] if k < depth and col < n else np.float32(0)
        cuda.syncthreads()
        for k in range(8):
            right = b_tile[k, tx]
            for i in range(8):
                sums[i] += a_tile[ty + 8 * i, k] * right
        cuda.syncthreads()
    for i in range(8):
        if top + ty + 8 * i < m and left + tx < n:
            c[top + ty + 8 * i, left + tx] = sums[i]
