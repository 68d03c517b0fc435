# exercise: arch.jumps  fails: loaded bytes  says: each element is in two differences
import numpy as np

from gpulab import cuda


@cuda.jit
def jumps(a, out):
    r, t = cuda.blockIdx.x, cuda.threadIdx.x
    most = np.float32(0)
    for i in range(t, a.shape[1] - 1, 128):
        most = max(most, abs(a[r, i + 1] - a[r, i]))
    out[r, t] = most
