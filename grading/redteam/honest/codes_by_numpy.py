# how: NumPy's rint and clip on the whole vector; the codes as a list of NumPy's integers
# exercise: quant.affine
import numpy as np


def affine(values, bits):
    x = np.array(values, dtype=np.float64)
    low, high = min(x.min(), 0.0), max(x.max(), 0.0)
    most = (1 << bits) - 1
    scale = (high - low) / most
    if scale == 0:
        scale = 1.0
    zero = int(np.rint(-low / scale))
    codes = np.clip(np.rint(x / scale) + zero, 0, most).astype(np.int64)
    return scale, zero, list(codes)
