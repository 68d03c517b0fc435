# exercise: parallel.kahan  fails: operations  says: naive
from gpulab import cuda


@cuda.jit
def kahan(a, sums):
    column = cuda.grid(1)
    if column < a.shape[1]:
        s = 0.0
        error = 0.0
        for row in range(a.shape[0]):
            x = a[row, column]
            t = s + x
            part = t - s
            error += (s - (t - part)) + (x - part)
            s = t
        sums[column] = s + error
