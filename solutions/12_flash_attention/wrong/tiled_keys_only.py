# exercise: attention.tiled  fails: peak memory  says: budget 182,784
import math

import torch


def tiled(q, k, v, tile):
    outs, lses = [], []
    for rows in [q]:
        m = torch.full((len(rows),), -math.inf)
        s = torch.zeros(len(rows))
        out = torch.zeros(len(rows), v.shape[1])
        for first in range(0, len(k), tile):
            scores = rows @ k[first : first + tile].t()
            larger = torch.maximum(m, scores.amax(1))
            weights = torch.exp(scores - larger[:, None])
            old = torch.exp(m - larger)
            s = s * old + weights.sum(1)
            out = out * old[:, None] + weights @ v[first : first + tile]
            m = larger
        outs.append(out / s.clamp(min=1)[:, None])
        lses.append(m + torch.log(s))
    return torch.cat(outs), torch.cat(lses)
