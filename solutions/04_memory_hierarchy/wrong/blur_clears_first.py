# exercise: memory.blur  fails: stored bytes  says: stored 2 times
import numpy as np

from gpulab import cuda


@cuda.jit
def blur(a, out):
    tile = cuda.shared.array((10, 34), np.float32)
    rows, cols = a.shape
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    left, top = cuda.blockIdx.x * 32 - 1, cuda.blockIdx.y * 8 - 1
    for k in range(ty * 32 + tx, 340, 256):
        y, x = top + k // 34, left + k % 34
        if 0 <= y < rows and 0 <= x < cols:
            tile[k // 34, k % 34] = a[y, x]
        else:
            tile[k // 34, k % 34] = 0
    x, y = cuda.grid(2)
    if x < cols and y < rows:
        out[y, x] = np.float32(0)
    cuda.syncthreads()
    if x < cols and y < rows:
        total = np.float32(0)
        for dy in range(3):
            for dx in range(3):
                total += tile[ty + dy, tx + dx]
        out[y, x] = total / np.float32(9)
