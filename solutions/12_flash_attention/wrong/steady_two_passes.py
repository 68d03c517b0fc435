# exercise: attention.steady  fails: matrix FLOPs  says: budget 393,216
import math

import torch


def steady(q, k, v, tile):
    outs, lses = [], []
    for rows in q.split(tile):
        largest = torch.full((len(rows),), -math.inf)
        for keys in k.split(tile):
            largest = torch.maximum(largest, (rows @ keys.t()).amax(1))
        s = torch.zeros(len(rows))
        out = torch.zeros(len(rows), v.shape[1])
        for keys, values in zip(k.split(tile), v.split(tile), strict=True):
            weights = torch.exp(rows @ keys.t() - largest[:, None])
            s = s + weights.sum(1)
            out = out + weights @ values
        outs.append(out / s[:, None])
        lses.append(largest + torch.log(s))
    return torch.cat(outs), torch.cat(lses)
