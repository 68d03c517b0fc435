# exercise: scaling.forecast  fails: FLOPs spent  says: 6 · parameters
import numpy as np


def forecast(train, budget, target):
    sizes = np.geomspace(1e8, 1e12, 40)
    losses = [train(float(n), float(target / 6 / n)) for n in sizes]
    i = int(np.argmin(losses))
    return [float(sizes[i]), float(target / 6 / sizes[i]), losses[i]]
