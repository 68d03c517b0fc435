# exercise: gemm.batched  fails: loaded bytes  says: 2,097,152 B
import numpy as np

from gpulab import cuda


@cuda.jit
def batched(a, b, c):
    col, row, product = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.x
    n = c.shape[1]
    if product < c.shape[0] and row < n and col < n:
        total = np.float32(0)
        for k in range(n):
            total += a[product, row, k] * b[product, k, col]
        c[product, row, col] = total
