# exercise: memory.blur  fails: right  says: should be
import numpy as np

from gpulab import cuda


@cuda.jit
def blur(a, out):
    tile = cuda.shared.array((10, 34), np.float32)
    rows, cols = a.shape
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    left, top = cuda.blockIdx.x * 32 - 1, cuda.blockIdx.y * 8 - 1
    if rows > 0 and cols > 0:
        for k in range(ty * 32 + tx, 340, 256):
            y, x = max(0, min(rows - 1, top + k // 34)), max(0, min(cols - 1, left + k % 34))
            tile[k // 34, k % 34] = a[y, x]
    cuda.syncthreads()
    x, y = cuda.grid(2)
    if x < cols and y < rows:
        total = np.float32(0)
        for dy in range(3):
            for dx in range(3):
                total += tile[ty + dy, tx + dx]
        out[y, x] = total / np.float32(9)
