# exercise: parallel.scan  fails: barriers  says: 72 hand-overs
from numba import int32

from gpulab import cuda


@cuda.jit
def scan(a, out):
    s = cuda.shared.array((2, 256), int32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    s[0, t] = a[i] if i < a.size else 0
    cuda.syncthreads()
    side, distance = 0, 1
    while distance < 256:
        value = s[side, t]
        if t >= distance:
            value += s[side, t - distance]
        s[1 - side, t] = value
        cuda.syncthreads()
        side, distance = 1 - side, 2 * distance
    if i < a.size:
        out[i] = s[side, t]
