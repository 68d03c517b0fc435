# exercise: basics.saxpy  fails: right  says: 1025
from gpulab import cuda


@cuda.jit
def saxpy(alpha, x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = alpha * x[i] + y[i]
