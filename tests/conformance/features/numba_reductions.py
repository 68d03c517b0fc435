# feature: numba: shared memory, atomics, warp functions, cuda.reduce
import numpy as np
from numba import cuda, float32


@cuda.jit
def total(x, out):
    tile = cuda.shared.array(4, float32)
    own = x[cuda.grid(1)]
    for d in (16, 8, 4, 2, 1):
        own += cuda.shfl_down_sync(0xFFFFFFFF, own, d)
    if cuda.laneid == 0:
        tile[cuda.threadIdx.x // 32] = own
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(out, 0, tile[0] + tile[1] + tile[2] + tile[3])


x, out = np.ones(512, np.float32), np.zeros(1, np.float32)
total[4, 128](x, out)
assert out[0] == 512
assert cuda.reduce(lambda a, b: a + b)(np.arange(100.0)) == 4950
