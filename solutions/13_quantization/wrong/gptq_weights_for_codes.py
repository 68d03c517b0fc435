# exercise: quant.gptq  fails: right  says: whole numbers
import numpy as np


def gptq(weights, hessian, scales, zeros, bits):
    w, scale, zero = np.array(weights), np.array(scales)[:, None], np.array(zeros)[:, None]
    return (scale * (np.clip(np.round(w / scale) + zero, 0, 2**bits - 1) - zero)).tolist()
