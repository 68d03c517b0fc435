# how: NumPy arrays with np.where for the gradients
# exercise: quant.fake
import numpy as np


def fake(values, gradients, scale, zero, bits):
    x, g = np.array(values), np.array(gradients)
    raw = np.round(x / scale) + zero
    top = 2**bits - 1
    restored = (np.clip(raw, 0, top) - zero) * scale
    inside = (raw >= 0) & (raw <= top)
    return restored.tolist(), np.where(inside, g, 0).tolist()
