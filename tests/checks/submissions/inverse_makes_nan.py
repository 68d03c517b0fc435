# toy.inverse: NaN where the reference has a number
from gpulab import cuda


@cuda.jit
def answer(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = (a[i] - 2) / (a[i] - 2) / a[i]
