# exercise: parallel.kahan  fails: right  says: relative error 4.3e-16
from gpulab import cuda


@cuda.jit
def kahan(a, sums):
    column = cuda.grid(1)
    if column < a.shape[1]:
        s = 0.0
        for row in range(a.shape[0]):
            s += a[row, column]
        sums[column] = s
