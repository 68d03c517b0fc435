# exercise: gemm.batched  fails: right  says: Race in kernel
import numpy as np

from gpulab import cuda


@cuda.jit
def batched(a, b, c):
    a_tile = cuda.shared.array((16, 16), np.float32)
    b_tile = cuda.shared.array((16, 16), np.float32)
    col, row, product = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.x
    n = c.shape[1]
    inside = product < c.shape[0] and row < n and col < n
    if inside:
        a_tile[row, col] = a[product, row, col]
        b_tile[row, col] = b[product, row, col]
    if inside:
        total = np.float32(0)
        for k in range(n):
            total += a_tile[row, k] * b_tile[k, col]
        c[product, row, col] = total
