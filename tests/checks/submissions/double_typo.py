# toy.double: a name that does not exist
from gpulab import cuda


@cuda.jit
def answer(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = 2 * b[i]


# ruff: noqa: F821 (the missing name is what is wrong with it)
