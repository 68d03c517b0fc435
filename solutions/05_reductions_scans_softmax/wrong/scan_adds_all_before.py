# exercise: parallel.scan  fails: loaded bytes  says: naive
from gpulab import cuda


@cuda.jit
def scan(a, out):
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i < a.size:
        value = 0
        for k in range(i - t, i + 1):
            value += a[k]
        out[i] = value
