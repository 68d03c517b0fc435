# exercise: gemm.matvec  fails: load sectors  says: 131,072
import numpy as np

from gpulab import cuda


@cuda.jit
def matvec(a, x, y):
    t = cuda.threadIdx.y * 32 + cuda.threadIdx.x
    row = cuda.blockIdx.x * 64 + t
    if t < 64 and row < a.shape[0]:
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += a[row, k] * x[k]
        y[row] = total
