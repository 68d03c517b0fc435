# exercise: parallel.histogram  fails: global atomics  says: naive
from gpulab import cuda


@cuda.jit
def histogram(values, counts):
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(counts, values[i], 1)
