# exercise: parallel.total  fails: barriers  says: 73 hand-overs
from numba import float32

from gpulab import cuda


@cuda.jit
def total(a, out):
    s = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    value = float32(0)
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        value += a[i]
    s[t] = value
    cuda.syncthreads()
    distance = 128
    while distance > 0:
        if t < distance:
            s[t] += s[t + distance]
        cuda.syncthreads()
        distance //= 2
    if t == 0:
        cuda.atomic.add(out, 0, s[0])
