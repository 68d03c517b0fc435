# toy.double: three dots
from gpulab import cuda


@cuda.jit
def answer(a, out): ...
