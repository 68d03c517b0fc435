# exercise: memory.padded  fails: store sectors  says: 32.0
from gpulab import cuda


@cuda.jit
def padded(a, out):
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        out[x, y] = a[y, x]
