# exercise: memory.unpack  fails: right  says: should be
import numpy as np

from gpulab import cuda


@cuda.jit
def unpack(points, xs, ys, zs):
    staged = cuda.shared.array(768, np.float32)
    t = cuda.threadIdx.x
    first = cuda.blockIdx.x * 768
    for k in range(t, 768, 256):
        if first + k < points.size:
            staged[k] = points[first + k]
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < xs.size:
        xs[i] = staged[t]
        ys[i] = staged[256 + t]
        zs[i] = staged[512 + t]
