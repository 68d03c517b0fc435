# toy.double: a loop without an end
from gpulab import cuda


@cuda.jit
def answer(a, out):
    i = cuda.grid(1)
    if i < a.size:
        while a[i] == a[i]:
            out[i] = 2 * a[i]
