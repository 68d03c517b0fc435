# exercise: compress.sparse24  fails: load sectors  says: neighbouring lanes
import numpy as np

from gpulab import cuda


@cuda.jit
def sparse24(values, meta, x, out):
    near = cuda.shared.array(1024, np.float32)
    for c in range(cuda.threadIdx.x, x.size, cuda.blockDim.x):
        near[c] = x[c]
    cuda.syncthreads()
    row = cuda.blockIdx.x * 8 + cuda.threadIdx.x // 32
    lane = cuda.threadIdx.x % 32
    if row < out.size:
        total = np.float32(0)
        for g in range(lane, x.size // 4, 32):
            bits = meta[row, g // 2] >> (4 * (g % 2))
            total += np.float32(values[row, 2 * g]) * near[4 * g + (bits & 3)]
            total += np.float32(values[row, 2 * g + 1]) * near[4 * g + ((bits >> 2) & 3)]
        for d in (16, 8, 4, 2, 1):
            total += cuda.shfl_down_sync(0xFFFFFFFF, total, d)
        if lane == 0:
            out[row] = total
