# how: the matrices of Winograd as NumPy arrays, halved with a division
# exercise: cupy.winograd
import numpy as np


def winograd():
    weights = np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]]) / 2
    inputs = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
    outputs = np.array([[1, 1, 1, 0], [0, 1, -1, -1]])
    return {"inputs": inputs.tolist(), "weights": weights.tolist(), "outputs": outputs.tolist()}
