# exercise: basics.saxpy  fails: sectors in all  says: number of all threads
from gpulab import cuda


@cuda.jit
def saxpy(alpha, x, y):
    for i in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        for lane in range(32):
            if cuda.laneid == lane:
                y[i] = alpha * x[i] + y[i]
