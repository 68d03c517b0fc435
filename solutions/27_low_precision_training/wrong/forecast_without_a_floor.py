# exercise: scaling.forecast  fails: regret  says: floor
import numpy as np


def forecast(train, budget, target):
    sizes = [(n, budget / 8 / 6 / n / k) for n in np.geomspace(1e7, 1e9, 6) for k in (1, 4, 16, 64)]
    sizes = [(float(n), float(d)) for n, d in sizes]
    losses = np.array([train(n, d) for n, d in sizes])
    n, d = np.array(sizes).T
    best = None
    for a in np.linspace(0.2, 0.6, 81):
        for b in np.linspace(0.2, 0.6, 81):
            columns = np.stack([np.zeros(len(n)), (n / 1e8) ** -a, (d / 1e9) ** -b], 1) / losses[:, None]
            found = np.linalg.lstsq(columns, np.ones(len(n)), rcond=None)[0]
            error = ((columns @ found - 1) ** 2).sum()
            if best is None or error < best[0]:
                best = error, a, b, *found
    _, a, b, e, fa, fb = best
    n = np.geomspace(1e7, 1e12, 2000)
    loss = e + fa * (n / 1e8) ** -a + fb * (target / 6 / n / 1e9) ** -b
    i = loss.argmin()
    return [float(n[i]), float(target / 6 / n[i]), float(loss[i])]
