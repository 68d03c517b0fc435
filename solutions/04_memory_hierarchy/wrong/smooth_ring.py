# exercise: memory.smooth  fails: local memory  says: local
import numpy as np

from gpulab import cuda


@cuda.jit
def smooth(a, out):
    ring = cuda.local.array(4, np.float32)
    column = cuda.grid(1)
    if column < a.shape[1]:
        for k in range(4):
            ring[k] = 0
        for row in range(a.shape[0]):
            ring[row % 4] = a[row, column]
            out[row, column] = (ring[0] + ring[1] + ring[2] + ring[3]) * np.float32(0.25)
