# exercise: modern.select  fails: bytes  says: naive
import math

import torch


def select(q, k, v, means, keep):
    best = torch.softmax(q @ means.t(), dim=1).sum(0).topk(keep).indices
    chosen = torch.zeros(len(means)).index_put((best,), torch.ones(keep)) > 0
    scores = (q @ k.t()).view(len(q), -1, 64)
    scores = scores.masked_fill(~chosen[None, :, None], -math.inf).view(len(q), -1)
    return torch.softmax(scores, dim=1) @ v
