# exercise: memory.unpack  fails: load sectors, sectors in all  says: what the points need
from gpulab import cuda


@cuda.jit
def unpack(points, xs, ys, zs):
    first = cuda.blockIdx.x * 768
    for k in range(first + cuda.threadIdx.x, min(first + 768, points.size), 256):
        if k % 3 == 0:
            xs[k // 3] = points[k]
        elif k % 3 == 1:
            ys[k // 3] = points[k]
        else:
            zs[k // 3] = points[k]
