# exercise: gemm.matvec  fails: right  says: Race in kernel
import numpy as np

from gpulab import cuda


@cuda.jit
def matvec(a, x, y):
    partial = cuda.shared.array((64, 33), np.float32)
    sums = cuda.local.array(8, np.float32)
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    first = cuda.blockIdx.x * 64
    for i in range(8):
        sums[i] = 0
    for k in range(lane, a.shape[1], 32):
        factor = x[k]
        for i in range(8):
            row = first + warp + 8 * i
            if row < a.shape[0]:
                sums[i] += a[row, k] * factor
    for i in range(8):
        partial[warp + 8 * i, lane] = sums[i]
    t = warp * 32 + lane
    if t < 64 and first + t < a.shape[0]:
        total = np.float32(0)
        for i in range(32):
            total += partial[t, i]
        y[first + t] = total
