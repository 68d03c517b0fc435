# exercise: start.double  fails: right  says: out[255]
from gpulab import cuda


@cuda.jit
def double(a, out):
    i = cuda.grid(1)
    if i < a.size - 1:
        out[i] = a[i] + a[i]
