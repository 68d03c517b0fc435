# toy.double: handed in with a launch shape
from gpulab import cuda


@cuda.jit
def kernel(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = 2 * a[i]


answer = kernel[4, 256]
