# exercise: memory.unpack  fails: right  says: 1,000
import numpy as np

from gpulab import cuda


@cuda.jit
def unpack(points, xs, ys, zs):
    staged = cuda.shared.array(768, np.float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    first = cuda.blockIdx.x * 768
    if i < xs.size:
        for k in range(3):
            staged[k * 256 + t] = points[min(first + k * 256 + t, points.size - 1)]
    cuda.syncthreads()
    if i < xs.size:
        xs[i] = staged[3 * t]
        ys[i] = staged[3 * t + 1]
        zs[i] = staged[3 * t + 2]
