# exercise: memory.smooth  fails: stored bytes  says: stored 2 times
import numpy as np

from gpulab import cuda


@cuda.jit
def smooth(a, out):
    column = cuda.grid(1)
    if column < a.shape[1]:
        for row in range(a.shape[0]):
            out[row, column] = np.float32(0)
        w0 = w1 = w2 = np.float32(0)
        for row in range(a.shape[0]):
            w3 = w2
            w2 = w1
            w1 = w0
            w0 = a[row, column]
            out[row, column] = (w0 + w1 + w2 + w3) * np.float32(0.25)
