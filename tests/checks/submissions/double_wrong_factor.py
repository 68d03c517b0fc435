# toy.double: odd elements are wrong
from gpulab import cuda


@cuda.jit
def answer(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = a[i] * (2 + i % 2)
