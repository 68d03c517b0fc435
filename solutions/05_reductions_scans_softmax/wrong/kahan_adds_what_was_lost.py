# exercise: parallel.kahan  fails: right  says: should be
from gpulab import cuda


@cuda.jit
def kahan(a, sums):
    column = cuda.grid(1)
    if column < a.shape[1]:
        s = 0.0
        lost = 0.0
        for row in range(a.shape[0]):
            y = a[row, column] + lost
            t = s + y
            lost = (t - s) - y
            s = t
        sums[column] = s
