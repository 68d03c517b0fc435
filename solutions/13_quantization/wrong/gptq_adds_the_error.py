# exercise: quant.gptq  fails: error  says: naive
import numpy as np


def gptq(weights, hessian, scales, zeros, bits):
    w, h = np.array(weights), np.array(hessian)
    scale, zero = np.array(scales), np.array(zeros)
    h = h + 0.01 * np.mean(np.diag(h)) * np.eye(len(h))
    upper = np.linalg.cholesky(np.linalg.inv(h)).T
    codes = np.zeros(w.shape, int)
    for j in range(w.shape[1]):
        codes[:, j] = np.clip(np.round(w[:, j] / scale) + zero, 0, 2**bits - 1)
        error = (w[:, j] - scale * (codes[:, j] - zero)) / upper[j, j]
        w[:, j + 1 :] += np.outer(error, upper[j, j + 1 :])
    return codes.tolist()
