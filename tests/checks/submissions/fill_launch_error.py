# toy.fill: blocks that are too large
from gpulab import cuda


@cuda.jit
def plus_one(a, out):
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        out[y, x] = a[y, x] + 1


def answer(a, out):
    plus_one[1, (64, 64)](a, out)
