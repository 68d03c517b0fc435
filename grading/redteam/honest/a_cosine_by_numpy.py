# how: dot products and norms of NumPy, where the solution has sums of Python
# exercise: neural.cosine
import numpy as np


def cosine(u, v):
    a, b = np.array(u, dtype=float), np.array(v, dtype=float)
    norm = np.linalg.norm(a) * np.linalg.norm(b)
    if norm == 0:
        return 0.0
    return np.dot(a, b) / norm
