# exercise: attention.steady  fails: right  says: should be
import math

import torch


def steady(q, k, v, tile):
    outs, lses = [], []
    for rows in q.split(tile):
        m = torch.full((len(rows),), -math.inf)
        s = torch.zeros(len(rows))
        out = torch.zeros(len(rows), v.shape[1])
        for first in range(0, len(k), tile):
            scores = rows @ k[first : first + tile].t()
            larger = scores.amax(1)
            weights = torch.exp(scores - larger[:, None])
            old = torch.exp((m - larger).clamp(max=80))
            s = s * old + weights.sum(1)
            out = out * old[:, None] + weights @ v[first : first + tile]
            m = larger
        outs.append(out / s[:, None])
        lses.append(m + torch.log(s))
    return torch.cat(outs), torch.cat(lses)
