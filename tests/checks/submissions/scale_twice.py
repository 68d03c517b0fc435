# toy.scale: the first eight elements are scaled twice
from gpulab import cuda


@cuda.jit
def answer(x, factor):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= factor
        if i < 8:
            x[i] *= factor
