# exercise: memory.transpose  fails: load sectors  says: 20,480 sectors
from gpulab import cuda


@cuda.jit
def transpose(a, out):
    bx, by = cuda.blockIdx.x * 32, cuda.blockIdx.y * 32
    x, y = bx + cuda.threadIdx.y, by + cuda.threadIdx.x
    if x < a.shape[1] and y < a.shape[0]:
        out[x, y] = a[y, x]
