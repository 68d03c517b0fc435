# exercise: quant.smooth  fails: right  says: must be a positive number
import numpy as np


def smooth(activations, weights):
    x, w = np.abs(np.array(activations)).max(axis=0), np.abs(np.array(weights)).max(axis=0)
    return np.sqrt(x / np.where(w > 0, w, 1.0)).tolist()
