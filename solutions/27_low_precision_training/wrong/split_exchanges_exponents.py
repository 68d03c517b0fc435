# exercise: scaling.split  fails: regret  says: best
import numpy as np


def split(law, flops, served):
    _, of_size, alpha, of_tokens, beta = law
    n = np.geomspace(1e5, flops / (2 * served) if served else 1e15, 20_000)[:-1]
    loss = of_size * n**-beta + of_tokens * ((flops - 2 * n * served) / (6 * n)) ** -alpha
    return float(n[loss.argmin()])
