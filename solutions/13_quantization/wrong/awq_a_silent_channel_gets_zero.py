# exercise: quant.awq  fails: right  says: must be a positive number
import numpy as np


def awq(weights, activations, bits):
    return np.sqrt(np.abs(np.array(activations)).mean(axis=0)).tolist()
