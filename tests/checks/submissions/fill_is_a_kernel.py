# toy.fill: a kernel where host code is asked for
from gpulab import cuda


@cuda.jit
def answer(a, out):
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        out[y, x] = a[y, x] + 1
