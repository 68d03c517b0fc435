# exercise: quant.gptq  fails: error  says: naive
import numpy as np


def gptq(weights, hessian, scales, zeros, bits):
    w, scale, zero = np.array(weights), np.array(scales)[:, None], np.array(zeros)[:, None]
    return np.clip(np.round(w / scale) + zero, 0, 2**bits - 1).astype(int).tolist()
