# exercise: basics.matmul  fails: right  says: nan
from gpulab import cuda


@cuda.jit
def matmul(a, b, c):
    col, row = cuda.grid(2)
    if row < c.shape[0] and col < c.shape[1]:
        for i in range(a.shape[1]):
            c[row, col] += a[row, i] * b[i, col]  # c is not zero to begin with
