# exercise: quant.multiply  fails: load sectors  says: naive
import numpy as np

from gpulab import cuda


@cuda.jit
def multiply(packed, scales, x, out):
    row = 32 * cuda.blockIdx.x + cuda.threadIdx.x
    if cuda.threadIdx.x < 32 and row < out.size:
        total = np.float32(0)
        for chunk in range(x.size // 256):
            for lane in range(32):
                word = packed[row, 32 * chunk + lane]
                for place in range(8):
                    code = np.int32((word >> np.uint32(4 * place)) & np.uint32(15)) - np.int32(8)
                    column = 256 * chunk + 32 * place + lane
                    total += np.float32(code) * x[column] * scales[row, column // 64]
        out[row] = total
