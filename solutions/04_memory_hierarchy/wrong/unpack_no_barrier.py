# exercise: memory.unpack  fails: right  says: Race in kernel
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
    i = cuda.grid(1)
    if i < xs.size:
        xs[i] = staged[3 * t]
        ys[i] = staged[3 * t + 1]
        zs[i] = staged[3 * t + 2]
