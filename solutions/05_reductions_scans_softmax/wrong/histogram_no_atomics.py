# exercise: parallel.histogram  fails: right  says: should be
from gpulab import cuda


@cuda.jit
def histogram(values, counts):
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        counts[values[i]] += 1
