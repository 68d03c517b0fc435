# feature: CuPy: cupyx.jit
import cupy as cp
from cupyx import jit


@jit.rawkernel()
def copy(x, y, n):
    i = jit.blockIdx.x * jit.blockDim.x + jit.threadIdx.x
    if i < n:
        y[i] = x[i]


x = cp.arange(100)
y = cp.zeros_like(x)
copy((4,), (32,), (x, y, 100))
assert (x == y).all()
