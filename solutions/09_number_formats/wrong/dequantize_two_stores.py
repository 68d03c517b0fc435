# exercise: formats.dequantize  fails: store sectors  says: naive
import numpy as np

from gpulab import cuda


@cuda.jit
def dequantize(packed, scales, out):
    i = cuda.grid(1)
    if i < packed.size:
        both = np.uint32(packed[i])
        scale = np.uint32(scales[i >> 4]) - np.uint32(1)
        bits = out.view(np.uint32)
        for k in range(2):
            code = (both >> np.uint32(4 * k)) & np.uint32(15)
            magnitude = code & np.uint32(7)
            moved = (scale << np.uint32(23)) + (magnitude << np.uint32(22))
            if magnitude < np.uint32(2):
                moved = magnitude * (scale << np.uint32(23))
            bits[2 * i + k] = ((code & np.uint32(8)) << np.uint32(28)) | moved
