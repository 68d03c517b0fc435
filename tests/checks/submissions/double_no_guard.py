# toy.double: no guard
from gpulab import cuda


@cuda.jit
def answer(a, out):
    i = cuda.grid(1)
    out[i] = 2 * a[i]
