# exercise: basics.saxpy  fails: load sectors  says: 196,608 sectors
from gpulab import cuda


@cuda.jit
def saxpy(alpha, x, y):
    threads = cuda.gridsize(1)
    share = (y.size + threads - 1) // threads
    start = cuda.grid(1) * share
    for i in range(start, min(start + share, y.size)):
        y[i] = alpha * x[i] + y[i]
