# exercise: start.double  fails: right  says: 1000
from gpulab import cuda


@cuda.jit
def double(a, out):
    i = cuda.grid(1)
    out[i] = a[i] + a[i]
