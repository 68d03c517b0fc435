# exercise: basics.matmul  fails: right  says: 33 × 17 × 65
from numba import float32

from gpulab import cuda


@cuda.jit
def matmul(a, b, c):
    row, col = cuda.grid(2)
    if row < c.shape[0] and col < c.shape[1]:
        total = float32(0.0)
        for i in range(a.shape[1]):
            total += a[row, i] * b[i, col]
        c[row, col] = total
