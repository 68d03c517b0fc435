# how: imports numba's cuda in all the ways that one is used to, and CuPy
# exercise: memory.copy
# also: memory.transpose 4, memory.blur 5
import cupy as cp
import numba
import numba.cuda as nc
from numba import cuda, float32
from numba.cuda import jit


@jit
def copy(a, b):
    one = numba.float32(1)
    for i in range(nc.grid(1), a.size, numba.cuda.gridsize(1)):
        b[i] = one * a[i]
