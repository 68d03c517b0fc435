# exercise: quant.grouped  fails: right  says: should be
import numpy as np


def grouped(weights, bits, group):
    w = np.array(weights)
    parts = w.T.reshape(-1, group)
    low, high = np.minimum(parts.min(1), 0)[:, None], np.maximum(parts.max(1), 0)[:, None]
    scale = (high - low) / (2**bits - 1)
    zero = np.round(-low / scale)
    codes = np.clip(np.round(parts / scale) + zero, 0, 2**bits - 1)
    return [bits + 32 / group, (scale * (codes - zero)).reshape(w.T.shape).T.tolist()]
