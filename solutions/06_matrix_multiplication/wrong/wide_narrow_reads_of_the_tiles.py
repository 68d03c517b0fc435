# exercise: gemm.wide  fails: shared requests  says: 12,288 requests
import numpy as np

from gpulab import cuda


@cuda.jit
def wide(a, b, c):
    a_tile = cuda.shared.array((64, 8), np.float32, alignment=8)
    b_tile = cuda.shared.array((8, 64), np.float32, alignment=8)
    a_wide, b_wide = a_tile.view(np.float64), b_tile.view(np.float64)
    a_pairs, b_pairs = a.view(np.float64), b.view(np.float64)
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
        for i in range(4):
            row, p = top + t // 4 + 16 * i, first // 2 + t % 4
            a_wide[t // 4 + 16 * i, t % 4] = a_pairs[row, p] if row < m and 2 * p < depth else 0.0
            k, p = first + t // 32 + 2 * i, left // 2 + t % 32
            b_wide[t // 32 + 2 * i, t % 32] = b_pairs[k, p] if k < depth and 2 * p < n else 0.0
        cuda.syncthreads()
        for k in range(8):
            for i in range(8):
                mine[i] = a_tile[ty + 8 * i, k]
            for j in range(8):
                right = b_tile[k, tx + 8 * j]
                for i in range(8):
                    sums[i, j] += mine[i] * right
        cuda.syncthreads()
    for i in range(8):
        for j in range(8):
            row, col = top + ty + 8 * i, left + tx + 8 * j
            if row < m and col < n:
                c[row, col] = sums[i, j]
