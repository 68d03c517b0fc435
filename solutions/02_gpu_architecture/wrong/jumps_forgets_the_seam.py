# exercise: arch.jumps  fails: right  says: out[0, 127]
import numpy as np

from gpulab import cuda


@cuda.jit
def jumps(a, out):
    tile = cuda.shared.array(128, np.float32)
    r, t = cuda.blockIdx.x, cuda.threadIdx.x
    most = np.float32(0)
    for left in range(0, a.shape[1], 128):
        if left + t < a.shape[1]:
            tile[t] = a[r, left + t]
        cuda.syncthreads()
        if t < 127 and left + t + 1 < a.shape[1]:
            most = max(most, abs(tile[t + 1] - tile[t]))
        cuda.syncthreads()
    out[r, t] = most
