# exercise: memory.unpack  fails: load sectors  says: 4,608 sectors
from gpulab import cuda


@cuda.jit
def unpack(points, xs, ys, zs):
    i = cuda.grid(1)
    if i < xs.size:
        xs[i] = points[3 * i]
        ys[i] = points[3 * i + 1]
        zs[i] = points[3 * i + 2]
