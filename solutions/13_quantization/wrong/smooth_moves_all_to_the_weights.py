# exercise: quant.smooth  fails: error  says: budget
import numpy as np


def smooth(activations, weights):
    x = np.abs(np.array(activations)).max(axis=0)
    return np.where(x > 0, x, 1.0).tolist()
