# exercise: quant.smooth  fails: right  says: one for each channel
import numpy as np


def smooth(activations, weights):
    return np.sqrt(np.abs(np.array(activations)).max(axis=1)).tolist()
