# how: a quotient by the mean in NumPy, the answer an array
# exercise: parallel.factors
import numpy as np


def factors(counts):
    counts = np.asarray(counts, dtype=np.float64)
    return counts / counts.mean()
