# feature: numba: streams, a wait of the whole grid, random numbers
import numpy as np
from numba import cuda
from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32


@cuda.jit
def around(a, states, out):
    grid = cuda.cg.this_grid()
    i = cuda.grid(1)
    a[i] = i
    grid.sync()
    out[i] = a[a.size - 1 - i] + xoroshiro128p_uniform_float32(states, i)


stream = cuda.stream()
a = cuda.to_device(np.zeros(128), stream=stream)
out = cuda.device_array(128, np.float64, stream=stream)
around[4, 32, stream](a, create_xoroshiro128p_states(128, seed=1), out)
result = out.copy_to_host(stream=stream)
assert (np.floor(result) == np.arange(128)[::-1]).all()
