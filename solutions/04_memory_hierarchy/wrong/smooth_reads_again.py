# exercise: memory.smooth  fails: loaded bytes  says: naive
import numpy as np

from gpulab import cuda


@cuda.jit
def smooth(a, out):
    column = cuda.grid(1)
    if column < a.shape[1]:
        for row in range(a.shape[0]):
            total = np.float32(0)
            for k in range(max(0, row - 3), row + 1):
                total += a[k, column]
            out[row, column] = total * np.float32(0.25)
