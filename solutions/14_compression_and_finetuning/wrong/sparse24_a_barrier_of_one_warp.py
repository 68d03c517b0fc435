# exercise: compress.sparse24  fails: right  says: syncthreads()
import numpy as np

from gpulab import cuda


@cuda.jit
def sparse24(values, meta, x, out):
    near = cuda.shared.array(1024, np.float32)
    for c in range(cuda.threadIdx.x, x.size, cuda.blockDim.x):
        near[c] = x[c]
    cuda.syncwarp()
    row = cuda.blockIdx.x * 8 + cuda.threadIdx.x // 32
    lane = cuda.threadIdx.x % 32
    if row < out.size:
        total = np.float32(0)
        for v in range(lane, x.size // 2, 32):
            place = (meta[row, v // 4] >> (2 * (v % 4))) & 3
            total += np.float32(values[row, v]) * near[4 * (v // 2) + place]
        for d in (16, 8, 4, 2, 1):
            total += cuda.shfl_down_sync(0xFFFFFFFF, total, d)
        if lane == 0:
            out[row] = total
