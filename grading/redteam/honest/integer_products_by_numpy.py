# how: one product of integer matrices in NumPy, rounded and clipped
# exercise: edge.matmul
import numpy as np


def matmul(a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero):
    left = np.array(a, dtype=np.int64) - a_zero
    right = np.array(b, dtype=np.int64) - b_zero
    sums = left @ right
    scaled = np.rint(sums * (a_scale * b_scale / c_scale)).astype(np.int64) + c_zero
    return np.clip(scaled, 0, 255).tolist()
