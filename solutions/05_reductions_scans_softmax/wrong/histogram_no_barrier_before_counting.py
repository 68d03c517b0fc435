# exercise: parallel.histogram  fails: right  says: Race in kernel histogram
from numba import int32

from gpulab import cuda


@cuda.jit
def histogram(values, counts):
    bins = cuda.shared.array((64, 32), int32)
    t = cuda.threadIdx.x
    lane, warp = t % 32, t // 32
    for b in range(warp, 64, 8):
        bins[b, lane] = 0
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(bins, (values[i], lane), 1)
    cuda.syncthreads()
    for b in range(warp, 64, 8):
        number = bins[b, lane]
        for distance in (16, 8, 4, 2, 1):
            number += cuda.shfl_down_sync(0xFFFFFFFF, number, distance)
        if lane == 0:
            cuda.atomic.add(counts, b, number)
