# exercise: quant.awq  fails: error  says: budget 0.5
import numpy as np


def awq(weights, activations, bits):
    return np.maximum(np.abs(np.array(activations)).mean(axis=0), 1e-6).tolist()
