# exercise: basics.saxpy  fails: right  says: 1023
from gpulab import cuda


@cuda.jit
def saxpy(alpha, x, y):
    for i in range(cuda.grid(1), y.size, cuda.blockDim.x):  # blocks overlap: elements are changed twice
        y[i] = alpha * x[i] + y[i]
