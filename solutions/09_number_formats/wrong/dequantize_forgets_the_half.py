# exercise: formats.dequantize  fails: right  says: should be
import numpy as np

from gpulab import cuda


@cuda.jit(device=True)
def float_bits(code, scale):
    magnitude = code & np.uint32(7)
    moved = ((scale - np.uint32(1)) << np.uint32(23)) + (magnitude << np.uint32(22))
    return ((code & np.uint32(8)) << np.uint32(28)) | moved


@cuda.jit
def dequantize(packed, scales, out):
    i = cuda.grid(1)
    if i < packed.size:
        both = np.uint32(packed[i])
        scale = np.uint32(scales[i >> 4])
        first, second = float_bits(both & np.uint32(15), scale), float_bits(both >> np.uint32(4), scale)
        out.view(np.uint64)[i] = np.uint64(first) | (np.uint64(second) << np.uint64(32))
