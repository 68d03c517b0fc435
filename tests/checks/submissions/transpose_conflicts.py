# toy.transpose: a tile without padding
from numba import float32

from gpulab import cuda


@cuda.jit
def answer(a, out):
    tile = cuda.shared.array((32, 32), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    if x < a.shape[1] and y < a.shape[0]:
        tile[ty, tx] = a[y, x]
    cuda.syncthreads()
    column = cuda.blockIdx.y * 32 + tx
    row = cuda.blockIdx.x * 32 + ty
    if row < out.shape[0] and column < out.shape[1]:
        out[row, column] = tile[tx, ty]
