# exercise: start.double  fails: right  says: no thread wrote
from gpulab import cuda


@cuda.jit
def double(a, out):
    i = cuda.threadIdx.x
    if i < a.size:
        out[i] = a[i] + a[i]
