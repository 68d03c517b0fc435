# exercise: parallel.histogram  fails: atomic conflicts  says: atomic conflicts
from numba import int32

from gpulab import cuda


@cuda.jit
def histogram(values, counts):
    bins = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    if t < 64:
        bins[t] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(bins, values[i], 1)
    cuda.syncthreads()
    if t < 64:
        cuda.atomic.add(counts, t, bins[t])
