# exercise: parallel.scan  fails: right  says: Race in kernel scan
from numba import int32

from gpulab import cuda


@cuda.jit
def scan(a, out):
    s = cuda.shared.array(256, int32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    s[t] = a[i] if i < a.size else 0
    cuda.syncthreads()
    distance = 1
    while distance < 256:
        if t >= distance:
            s[t] += s[t - distance]
        cuda.syncthreads()
        distance *= 2
    if i < a.size:
        out[i] = s[t]
