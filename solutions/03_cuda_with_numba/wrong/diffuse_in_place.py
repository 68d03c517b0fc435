# exercise: basics.diffuse  fails: right  says: luck
from numba import float32

from gpulab import cuda


@cuda.jit
def one_step(old, new):
    i = cuda.grid(1)
    if i < old.size:
        if i == 0 or i == old.size - 1:
            new[i] = old[i]
        else:
            new[i] = old[i] + float32(0.25) * (old[i - 1] - float32(2.0) * old[i] + old[i + 1])


@cuda.jit
def copy(old, new):
    i = cuda.grid(1)
    if i < old.size:
        new[i] = old[i]


def diffuse(rod, out, steps):
    blocks = max(1, -(-rod.size // 256))
    copy[blocks, 256](rod, out)
    for _ in range(steps):
        one_step[blocks, 256](out, out)
