# exercise: formats.dequantize  fails: instructions  says: integers of one type
import numpy as np

from gpulab import cuda


@cuda.jit(device=True)
def value(code):
    magnitude = code & 7
    x = np.float32(0)
    if magnitude == 1:
        x = np.float32(0.5)
    elif magnitude == 2:
        x = np.float32(1)
    elif magnitude == 3:
        x = np.float32(1.5)
    elif magnitude == 4:
        x = np.float32(2)
    elif magnitude == 5:
        x = np.float32(3)
    elif magnitude == 6:
        x = np.float32(4)
    elif magnitude == 7:
        x = np.float32(6)
    return -x if code >= 8 else x


@cuda.jit
def dequantize(packed, scales, out):
    i = cuda.grid(1)
    if i < packed.size:
        pair = cuda.local.array(2, np.float32)
        power = np.float32(2) ** (np.int32(scales[i >> 4]) - 127)
        pair[0] = value(packed[i] & 15) * power
        pair[1] = value(packed[i] >> 4) * power
        out.view(np.float64)[i] = pair.view(np.float64)[0]
