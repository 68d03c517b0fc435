# exercise: basics.matmul  fails: load sectors, sectors in all  says: 2 × what each element once needs
from numba import float32

from gpulab import cuda


@cuda.jit
def matmul(a, b, c):
    col, row = cuda.grid(2)
    if row < c.shape[0] and col < c.shape[1]:
        total = float32(0.0)
        for i in range(2 * a.shape[1]):
            total += a[row, i // 2] * b[i // 2, col]
        c[row, col] = total / float32(2.0)
