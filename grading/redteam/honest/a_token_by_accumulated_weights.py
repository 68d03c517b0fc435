# how: NumPy for weights and their running sums, and a search in them
# exercise: decode.sample
import numpy as np


def sample(choose, logits, temperature, top_k, top_p, *, _argsort=np.argsort):
    scores = np.asarray(logits, float)
    tokens = _argsort(-scores, kind="stable")
    if not temperature:
        return tokens[0].item()
    tokens = tokens[: top_k or len(tokens)]
    weights = np.exp((scores[tokens] - scores[tokens[0]]) / temperature)
    running = np.cumsum(weights / weights.sum())
    kept = min(int(np.searchsorted(running, top_p)) + 1, len(tokens))
    p = weights[:kept] / weights[:kept].sum()
    return tokens[choose(p.tolist())].item()
