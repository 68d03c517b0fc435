# exercise: basics.diffuse  fails: right  says: 1025
from numba import float32

from gpulab import cuda


@cuda.jit
def all_steps(rod, a, b, steps):
    i = cuda.grid(1)
    if i < rod.size:
        a[i] = rod[i]
    cuda.syncthreads()
    for _ in range(steps):
        if i < rod.size:
            if i == 0 or i == rod.size - 1:
                b[i] = a[i]
            else:
                b[i] = a[i] + float32(0.25) * (a[i - 1] - float32(2.0) * a[i] + a[i + 1])
        cuda.syncthreads()
        if i < rod.size:
            a[i] = b[i]
        cuda.syncthreads()


def diffuse(rod, out, steps):
    blocks = max(1, -(-rod.size // 256))
    all_steps[blocks, 256](rod, out, cuda.device_array_like(out), steps)
