# exercise: start.double  fails: bytes stored  says: How many elements
from gpulab import cuda


@cuda.jit
def double(a, out):
    for i in range(a.size):
        out[i] = a[i] + a[i]
