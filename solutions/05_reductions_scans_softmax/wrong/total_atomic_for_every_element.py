# exercise: parallel.total  fails: global atomics  says: naive
from gpulab import cuda


@cuda.jit
def total(a, out):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        cuda.atomic.add(out, 0, a[i])
