# exercise: basics.two_paths  fails: right  says: two_paths
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
    warp, lane = i // 32, i % 32
    j = (warp // 2 * 4 + lane // 16 * 2 + warp % 2) * 16 + lane % 16
    if i < a.size:  # guards the thread's number and not the element's
        if warp % 2 == 0:
            out[j] = grow(a[j])
        else:
            out[j] = decay(a[j])
