# exercise: attention.tiled  fails: right  says: should be
import math

import torch


def tiled(q, k, v, tile):
    outs, lses = [], []
    for rows in q.split(tile):
        m = torch.zeros(len(rows))
        s = torch.zeros(len(rows))
        out = torch.zeros(len(rows), v.shape[1])
        for first in range(0, len(k), tile):
            scores = rows @ k[first : first + tile].t()
            larger = torch.maximum(m, scores.amax(1))
            weights = torch.exp(scores)
            old = torch.ones(len(rows))
            s = s * old + weights.sum(1)
            out = out * old[:, None] + weights @ v[first : first + tile]
            m = torch.zeros(len(rows))
        outs.append(out / s.clamp(min=1)[:, None])
        lses.append(m + torch.log(s))
    return torch.cat(outs), torch.cat(lses)
