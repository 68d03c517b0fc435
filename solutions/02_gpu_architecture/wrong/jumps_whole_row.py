# exercise: arch.jumps  fails: shared memory  says: 32,768 B
import numpy as np

from gpulab import cuda


@cuda.jit
def jumps(a, out):
    row = cuda.shared.array(8192, np.float32)
    r, t = cuda.blockIdx.x, cuda.threadIdx.x
    for i in range(t, a.shape[1], 128):
        row[i] = a[r, i]
    cuda.syncthreads()
    most = np.float32(0)
    for i in range(t, a.shape[1] - 1, 128):
        most = max(most, abs(row[i + 1] - row[i]))
    out[r, t] = most
