# exercise: basics.matmul  fails: load sectors  says: 811,008 sectors
from numba import float32

from gpulab import cuda


@cuda.jit
def matmul(a, b, c):
    x, y = cuda.grid(2)
    k = y * cuda.gridDim.x * cuda.blockDim.x + x  # number the elements of c column by column
    if k < c.size:
        row, col = k % c.shape[0], k // c.shape[0]
        total = float32(0.0)
        for i in range(a.shape[1]):
            total += a[row, i] * b[i, col]
        c[row, col] = total
