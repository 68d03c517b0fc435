# exercise: decode.sample  fails: right  says: first wrong: all together
from math import exp


def sample(choose, logits, temperature, top_k, top_p):
    order = sorted(range(len(logits)), key=lambda token: -logits[token])
    if temperature == 0:
        return order[0]
    order = order[: top_k or None]
    plain = [exp(logits[t] - logits[order[0]]) for t in order]
    weights = [exp((logits[t] - logits[order[0]]) / temperature) for t in order]
    reached, kept = 0.0, 0
    while kept < len(order) and reached < top_p * sum(plain):
        reached += plain[kept]
        kept += 1
    return order[choose([w / sum(weights[:kept]) for w in weights[:kept]])]
