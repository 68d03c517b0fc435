# exercise: bits.four  fails: bias  says: draws
import numpy as np

from gpulab import numerics

GRID = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def four(x, draws):
    amax = np.abs(x).reshape(len(x), -1, 16).max(2)
    scale = np.float32(amax.max() / (6 * 448))
    scales = numerics.encode(amax / 6 / scale, "E4M3", saturate=True)
    wide = np.repeat(numerics.decode(scales, "E4M3") * scale, 16, axis=1)
    v = np.minimum(np.abs(x) / np.where(wide > 0, wide, 1), 6)
    low = np.minimum(np.searchsorted(GRID, v, side="right") - 1, 6)
    up = 0.5 < (v - GRID[low]) / (GRID[low + 1] - GRID[low])
    codes = low + up + 8 * (x < 0)
    return {"codes": (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8), "scales": scales, "scale": scale}
