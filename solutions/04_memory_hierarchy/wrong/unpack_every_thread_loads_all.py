# exercise: memory.unpack  fails: load sectors  says: what each element once needs
import numpy as np

from gpulab import cuda


@cuda.jit
def unpack(points, xs, ys, zs):
    staged = cuda.local.array(3, np.float32)
    i = cuda.grid(1)
    first = cuda.blockIdx.x * 768
    for k in range(first, min(first + 768, points.size)):
        number = points[k]
        if k // 3 == i:
            staged[k % 3] = number
    if i < xs.size:
        xs[i] = staged[0]
        ys[i] = staged[1]
        zs[i] = staged[2]
