# exercise: parallel.compact  fails: right  says: should be
from gpulab import cuda


@cuda.jit
def reset(count):
    count[0] = 0


@cuda.jit
def move(a, out, count):
    i = cuda.grid(1)
    if i < a.size and a[i] > 0:
        out[a.size - 1 - cuda.atomic.add(count, 0, 1)] = a[i]


def compact(a, out, count):
    reset[1, 1](count)
    move[max(1, -(-a.size // 256)), 256](a, out, count)
