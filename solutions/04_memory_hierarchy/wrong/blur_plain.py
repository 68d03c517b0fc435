# exercise: memory.blur  fails: loaded bytes  says: naive
import numpy as np

from gpulab import cuda


@cuda.jit
def blur(a, out):
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        total = np.float32(0)
        for v in range(max(0, y - 1), min(a.shape[0], y + 2)):
            for u in range(max(0, x - 1), min(a.shape[1], x + 2)):
                total += a[v, u]
        out[y, x] = total / np.float32(9)
