# exercise: parallel.histogram  fails: bank conflicts  says: bank conflicts
from numba import int32

from gpulab import cuda


@cuda.jit
def histogram(values, counts):
    bins = cuda.shared.array((32, 64), int32)
    t = cuda.threadIdx.x
    lane = t % 32
    for k in range(t, 2048, 256):
        bins[k // 64, k % 64] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(bins, (lane, values[i]), 1)
    cuda.syncthreads()
    if t < 64:
        number = 0
        for k in range(32):
            number += bins[k, t]
        cuda.atomic.add(counts, t, number)
