# exercise: memory.centre  fails: stored bytes  says: stored 64 times
import numpy as np

from gpulab import cuda


@cuda.jit
def centre(a, out):
    tile = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    for first in range(cuda.blockIdx.x * 64, a.size, cuda.gridDim.x * 64):
        width = min(64, a.size - first)
        if t < width:
            tile[t] = a[first + t]
        cuda.syncthreads()
        total = np.float32(0)
        for k in range(width):
            total += tile[k]
            if t < width:
                out[first + t] = tile[t] - total / np.float32(width)
        cuda.syncthreads()
