# exercise: memory.padded  fails: bank conflicts  says: 21,120 wavefronts
import numpy as np

from gpulab import cuda


@cuda.jit
def padded(a, out):
    tile = cuda.shared.array((32, 32), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        tile[ty, tx] = a[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * 32 + tx
    y = cuda.blockIdx.x * 32 + ty
    if x < a.shape[0] and y < a.shape[1]:
        out[y, x] = tile[tx, ty]
