# exercise: memory.blur  fails: loaded bytes  says: budget
import numpy as np

from gpulab import cuda


@cuda.jit
def blur(a, out):
    tile = cuda.shared.array((8, 32), np.float32)
    rows, cols = a.shape
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    if x < cols and y < rows:
        tile[ty, tx] = a[y, x]
    cuda.syncthreads()
    if x < cols and y < rows:
        total = np.float32(0)
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                if 0 <= y + dy < rows and 0 <= x + dx < cols:
                    if 0 <= ty + dy < 8 and 0 <= tx + dx < 32:
                        total += tile[ty + dy, tx + dx]
                    else:
                        total += a[y + dy, x + dx]
        out[y, x] = total / np.float32(9)
