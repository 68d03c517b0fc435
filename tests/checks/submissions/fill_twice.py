# toy.fill: launches twice where once is enough
from gpulab import cuda


@cuda.jit
def plus_one(a, out):
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        out[y, x] = a[y, x] + 1


def answer(a, out):
    rows, columns = a.shape
    for _ in range(2):
        plus_one[((columns + 31) // 32, (rows + 7) // 8), (32, 8)](a, out)
