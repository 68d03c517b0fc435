# exercise: basics.two_paths  fails: warp instructions  says: naive
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
        grown, decayed = grow(a[i]), decay(a[i])
        plant = float32(i % 32 < 16)
        out[i] = plant * grown + (float32(1.0) - plant) * decayed
