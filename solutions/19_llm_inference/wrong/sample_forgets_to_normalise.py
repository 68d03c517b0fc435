# exercise: decode.sample  fails: right  says: they sum to
from math import exp


def sample(choose, logits, temperature, top_k, top_p):
    order = sorted(range(len(logits)), key=lambda token: -logits[token])
    if temperature == 0:
        return order[0]
    weights = [exp((logits[t] - logits[order[0]]) / temperature) for t in order]
    p = [w / sum(weights) for w in weights][: top_k or None]
    kept = next((n + 1 for n in range(len(p)) if sum(p[: n + 1]) >= top_p), len(p))
    return order[choose(p[:kept])]
