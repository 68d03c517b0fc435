# exercise: decode.sample  fails: right  says: first wrong: ties
from math import exp


def sample(choose, logits, temperature, top_k, top_p):
    order = sorted(range(len(logits)), key=lambda token: -logits[token])
    if temperature == 0:
        return order[0]
    if top_k:
        least = logits[order[min(top_k, len(order)) - 1]]
        order = [token for token in order if logits[token] >= least]
    weights = [exp((logits[t] - logits[order[0]]) / temperature) for t in order]
    reached, kept = 0.0, 0
    while kept < len(order) and reached < top_p * sum(weights):
        reached += weights[kept]
        kept += 1
    return order[choose([w / reached for w in weights[:kept]])]
