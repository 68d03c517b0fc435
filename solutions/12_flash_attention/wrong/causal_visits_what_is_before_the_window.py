# exercise: attention.causal  fails: window FLOPs  says: first key that any query
import math

import torch


def causal(q, k, v, window, tile):
    outs, lses = [], []
    for first in range(0, len(q), tile):
        rows = q[first : first + tile]
        start = first + len(k) - len(q)
        m = torch.full((len(rows),), -math.inf)
        s = torch.zeros(len(rows))
        out = torch.zeros(len(rows), v.shape[1])
        for key in range(0, start + len(rows), tile):
            keys = k[key : key + tile]
            behind = start + torch.arange(len(rows))[:, None] - (key + torch.arange(len(keys)))
            scores = torch.where((behind >= 0) & (behind < window), rows @ keys.t(), -math.inf)
            larger = torch.maximum(m, scores.amax(1))
            shift = torch.where(larger > -math.inf, larger, 0.0)
            weights = torch.exp(scores - shift[:, None])
            old = torch.exp(m - shift)
            s = s * old + weights.sum(1)
            out = out * old[:, None] + weights @ v[key : key + tile]
            m = larger
        outs.append(out / s.clamp(min=1)[:, None])
        lses.append(m + torch.log(s))
    return torch.cat(outs), torch.cat(lses)
