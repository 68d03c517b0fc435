# exercise: memory.blur  fails: right  says: should be
import numpy as np

from gpulab import cuda


@cuda.jit
def blur(a, out):
    tile = cuda.shared.array((10, 34), np.float32)
    rows, cols = a.shape
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    for k in range(ty * 32 + tx, 340, 256):
        tile[k // 34, k % 34] = 0
    cuda.syncthreads()
    if x < cols and y < rows:
        tile[ty + 1, tx + 1] = a[y, x]
        if tx == 0 and x > 0:
            tile[ty + 1, 0] = a[y, x - 1]
        if tx == 31 and x + 1 < cols:
            tile[ty + 1, 33] = a[y, x + 1]
        if ty == 0 and y > 0:
            tile[0, tx + 1] = a[y - 1, x]
        if ty == 7 and y + 1 < rows:
            tile[9, tx + 1] = a[y + 1, x]
    cuda.syncthreads()
    if x < cols and y < rows:
        total = np.float32(0)
        for dy in range(3):
            for dx in range(3):
                total += tile[ty + dy, tx + dx]
        out[y, x] = total / np.float32(9)
