# exercise: memory.transpose  fails: store sectors  says: 20,480 sectors
from gpulab import cuda


@cuda.jit
def transpose(a, out):
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        out[x, y] = a[y, x]
