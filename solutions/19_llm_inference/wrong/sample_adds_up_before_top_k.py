# exercise: decode.sample  fails: right  says: first wrong: all together
from math import exp


def sample(choose, logits, temperature, top_k, top_p):
    order = sorted(range(len(logits)), key=lambda token: -logits[token])
    if temperature == 0:
        return order[0]
    weights = [exp((logits[t] - logits[order[0]]) / temperature) for t in order]
    reached, kept = 0.0, 0
    while kept < len(order) and reached < top_p * sum(weights):
        reached += weights[kept]
        kept += 1
    weights = weights[: min(kept, top_k or kept)]
    return order[choose([w / sum(weights) for w in weights])]
