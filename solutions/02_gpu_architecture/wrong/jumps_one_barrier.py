# exercise: arch.jumps  fails: right  says: order
import numpy as np

from gpulab import cuda


@cuda.jit
def jumps(a, out):
    tile = cuda.shared.array(129, np.float32)
    r, t = cuda.blockIdx.x, cuda.threadIdx.x
    columns = a.shape[1]
    most = np.float32(0)
    for left in range(0, columns, 128):
        if left + t < columns:
            tile[t] = a[r, left + t]
        if t == 0 and left + 128 < columns:
            tile[128] = a[r, left + 128]
        cuda.syncthreads()
        if left + t + 1 < columns:
            most = max(most, abs(tile[t + 1] - tile[t]))
    out[r, t] = most
