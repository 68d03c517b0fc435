# exercise: quant.clip  fails: error  says: naive
import numpy as np


def clip(values, bits):
    return float(np.percentile(np.abs(values), 99.9))
