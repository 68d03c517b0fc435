# toy.transpose: right, with scattered stores
from gpulab import cuda


@cuda.jit
def answer(a, out):
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        out[x, y] = a[y, x]
