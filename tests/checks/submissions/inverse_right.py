# toy.inverse: infinity where the reference has it
from gpulab import cuda


@cuda.jit
def answer(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = 1 / a[i]
