# exercise: gemm.wide  fails: right  says: should be
import numpy as np

from gpulab import cuda


@cuda.jit(device=True)
def first_of(pair):
    return np.int32(pair.view(np.int64)).view(np.float32)


@cuda.jit(device=True)
def second_of(pair):
    return np.int32(pair.view(np.int64) >> 32).view(np.float32)


@cuda.jit
def wide(a, b, c):
    a_pairs, b_pairs = a.view(np.float64), b.view(np.float64)
    a_tile = cuda.shared.array((64, 4), np.float64)
    b_tile = cuda.shared.array((8, 32), np.float64)
    sums = cuda.local.array((8, 8), np.float32)
    mine = cuda.local.array(8, np.float64)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    m, n, depth = c.shape[0], c.shape[1], a.shape[1]
    top, left = cuda.blockIdx.y * 64, cuda.blockIdx.x * 64
    for i in range(8):
        for j in range(8):
            sums[i, j] = 0
    t = ty * 8 + tx
    for first in range(0, depth, 8):
        for i in range(4):
            row, p = top + t // 4 + 16 * i, first // 2 + t % 4
            a_tile[t // 4 + 16 * i, t % 4] = a_pairs[row, p] if row < m and 2 * p < depth else 0.0
            k, p = first + t // 32 + 2 * i, left // 2 + t % 32
            b_tile[t // 32 + 2 * i, t % 32] = b_pairs[k, p] if k < depth and 2 * p < n else 0.0
        cuda.syncthreads()
        for p in range(4):
            for i in range(8):
                mine[i] = a_tile[ty + 8 * i, p]
            for j in range(4):
                upper = b_tile[2 * p, tx + 8 * j]
                lower = b_tile[2 * p + 1, tx + 8 * j]
                for i in range(8):
                    sums[i, 2 * j] += first_of(mine[i]) * first_of(upper)
                    sums[i, 2 * j + 1] += first_of(mine[i]) * second_of(upper)
                    sums[i, 2 * j] += second_of(mine[i]) * second_of(lower)
                    sums[i, 2 * j + 1] += second_of(mine[i]) * first_of(lower)
        cuda.syncthreads()
    for i in range(8):
        for j in range(8):
            row, col = top + ty + 8 * i, left + 2 * (tx + 8 * (j // 2)) + j % 2
            if row < m and col < n:
                c[row, col] = sums[i, j]
