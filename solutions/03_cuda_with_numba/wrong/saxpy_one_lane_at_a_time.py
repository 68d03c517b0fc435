# exercise: basics.saxpy  fails: load sectors  says: 8 × what each element once needs
from gpulab import cuda


@cuda.jit
def saxpy(alpha, x, y):
    for i in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        for lane in range(32):
            if cuda.laneid == lane:
                y[i] = alpha * x[i] + y[i]
