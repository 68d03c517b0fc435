# exercise: memory.transpose  fails: load sectors  says: 20 × what each element once needs
import numpy as np

from gpulab import cuda


@cuda.jit
def transpose(a, out):
    tile = cuda.shared.array((32, 32), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    for left in range(0, a.shape[1], 32):
        for top in range(0, a.shape[0], 32):
            if left + tx < a.shape[1] and top + ty < a.shape[0]:
                tile[ty, tx] = a[top + ty, left + tx]
            cuda.syncthreads()
            if top + tx < a.shape[0] and left + ty < a.shape[1]:
                out[left + ty, top + tx] = tile[tx, ty]
            cuda.syncthreads()
