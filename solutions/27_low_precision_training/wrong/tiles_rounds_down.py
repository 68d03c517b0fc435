# exercise: bits.tiles  fails: error, error of the largest  says: which way
import numpy as np

from gpulab import numerics


def tiles(x, rows, columns, powers):
    m, n = x.shape
    down, across = -(-m // rows), -(-n // columns)
    padded = np.zeros((down * rows, across * columns), np.float32)
    padded[:m, :n] = x
    blocks = padded.reshape(down, rows, across, columns)
    scales = np.abs(blocks).max((1, 3)) / np.float32(448)
    scales[scales == 0] = 1
    if powers:
        _, exponent = np.frexp(scales * 448)
        exponent -= 9
        scales = np.ldexp(np.float32(1), exponent)
    codes = numerics.encode(blocks / scales[:, None, :, None], "E4M3", saturate=True)
    codes = codes.reshape(padded.shape)[:m, :n]
    return {"codes": codes, "scales": (exponent + 127).astype(np.uint8) if powers else scales}
