# exercise: gemm.staged  fails: right  says: Race in kernel
import numpy as np

from gpulab import cuda


@cuda.jit
def staged(a, b, c):
    a_tile = cuda.shared.array((2, 32, 32), np.float32)
    b_tile = cuda.shared.array((2, 32, 32), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    m, n, depth = c.shape[0], c.shape[1], a.shape[1]
    a_tile[0, ty, tx] = a[row, tx] if row < m and tx < depth else np.float32(0)
    b_tile[0, ty, tx] = b[ty, col] if col < n and ty < depth else np.float32(0)
    total = np.float32(0)
    now = 0
    for first in range(32, depth + 32, 32):
        next_a = a[row, first + tx] if row < m and first + tx < depth else np.float32(0)
        next_b = b[first + ty, col] if col < n and first + ty < depth else np.float32(0)
        for k in range(32):
            total += a_tile[now, ty, k] * b_tile[now, k, tx]
        now = 1 - now
        a_tile[now, ty, tx] = next_a
        b_tile[now, ty, tx] = next_b
        cuda.syncthreads()
    if row < m and col < n:
        c[row, col] = total
