# exercise: decode.sample  fails: right  says: should be
from math import exp


def sample(choose, logits, temperature, top_k, top_p):
    order = sorted(range(len(logits)), key=lambda token: -logits[token])
    if temperature == 0:
        return order[0]
    order = order[: top_k or None]
    weights = [exp((logits[t] - logits[order[0]]) / temperature) for t in order]
    kept, reached = [], 0.0
    for weight in weights:
        reached += weight / sum(weights)
        if kept and reached > top_p + 1e-9:
            break
        kept.append(weight)
    return order[choose([w / sum(kept) for w in kept])]
