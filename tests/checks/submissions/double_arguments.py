# toy.double: takes one argument too many
from gpulab import cuda


@cuda.jit
def answer(a, out, n):
    i = cuda.grid(1)
    if i < n:
        out[i] = 2 * a[i]
