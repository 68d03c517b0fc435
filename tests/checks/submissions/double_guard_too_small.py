# toy.double: the last element is left out
from gpulab import cuda


@cuda.jit
def answer(a, out):
    i = cuda.grid(1)
    if i < a.size - 1:
        out[i] = 2 * a[i]
