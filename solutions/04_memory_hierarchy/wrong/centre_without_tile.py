# exercise: memory.centre  fails: loaded bytes  says: naive
import numpy as np

from gpulab import cuda


@cuda.jit
def centre(a, out):
    t = cuda.threadIdx.x
    for first in range(cuda.blockIdx.x * 64, a.size, cuda.gridDim.x * 64):
        width = min(64, a.size - first)
        total = np.float32(0)
        for k in range(width):
            total += a[first + k]
        if t < width:
            out[first + t] = a[first + t] - total / np.float32(width)
