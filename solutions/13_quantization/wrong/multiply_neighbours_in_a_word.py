# exercise: quant.multiply  fails: right  says: out[
import numpy as np

from gpulab import cuda


@cuda.jit
def multiply(packed, scales, x, out):
    lane, warp = cuda.threadIdx.x % 32, cuda.threadIdx.x // 32
    for k in range(4):
        row = 32 * cuda.blockIdx.x + 4 * warp + k
        if row < out.size:
            total = np.float32(0)
            for chunk in range(x.size // 256):
                word = packed[row, 32 * chunk + lane]
                for place in range(8):
                    code = np.int32((word >> np.uint32(4 * place)) & np.uint32(15)) - np.int32(8)
                    column = 256 * chunk + 8 * lane + place
                    total += np.float32(code) * x[column] * scales[row, column // 64]
            for apart in (16, 8, 4, 2, 1):
                total += cuda.shfl_down_sync(0xFFFFFFFF, total, apart)
            if lane == 0:
                out[row] = total
