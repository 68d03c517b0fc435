# exercise: scaling.forecast  fails: regret  says: vary
import numpy as np


def forecast(train, budget, target):
    tokens = [1e8, 2e8, 4e8, 8e8, 1.6e9]
    runs = [(d / 20, d, train(d / 20, d)) for d in tokens]
    compute = np.array([6 * n * d for n, d, _ in runs])
    losses = np.array([loss for _, _, loss in runs])
    best = None
    for power in np.linspace(0.05, 0.5, 91):
        columns = np.stack([np.ones(len(compute)), (compute / 1e18) ** -power], 1)
        found = np.linalg.lstsq(columns, losses, rcond=None)[0]
        error = ((columns @ found - losses) ** 2).sum()
        if best is None or error < best[0]:
            best = error, power, *found
    _, power, floor, factor = best
    n = (target / 120) ** 0.5
    return [n, 20 * n, float(floor + factor * (target / 1e18) ** -power)]
