# toy.double: only the first block works
from gpulab import cuda


@cuda.jit
def answer(a, out):
    i = cuda.threadIdx.x
    if i < a.size:
        out[i] = 2 * a[i]
