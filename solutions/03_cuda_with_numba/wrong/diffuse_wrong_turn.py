# exercise: basics.diffuse  fails: right  says: 4 steps
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


def diffuse(rod, out, steps):
    blocks = -(-rod.size // 256)
    source, target, other = rod, out, cuda.device_array_like(out)
    for step in range(steps):
        one_step[blocks, 256](source, target)
        source = target
        target = other if step % 2 == 0 else out  # after an even number of steps out is one step behind
