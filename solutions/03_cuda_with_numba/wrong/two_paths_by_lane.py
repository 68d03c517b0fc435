# exercise: basics.two_paths  fails: divergent branches  says: 512 branches
from numba import float32

from gpulab import cuda


@cuda.jit(device=True)
def grow(x):
    for _ in range(64):
        x += x * (float32(1.0) - x) * float32(1 / 64)
    return x


@cuda.jit(device=True)
def decay(x):
    for _ in range(64):
        x -= x * x * float32(1 / 64)
    return x


@cuda.jit
def two_paths(a, out):
    i = cuda.grid(1)
    if i < a.size:
        if i % 32 < 16:
            out[i] = grow(a[i])
        else:
            out[i] = decay(a[i])
