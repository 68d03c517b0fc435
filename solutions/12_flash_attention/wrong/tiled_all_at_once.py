# exercise: attention.tiled  fails: peak memory  says: naive 327,680
import math

import torch


def tiled(q, k, v, tile):
    if not len(k):
        return torch.zeros_like(q), torch.full((len(q),), -math.inf)
    scores = q @ k.t()
    return torch.exp(scores - torch.logsumexp(scores, 1)[:, None]) @ v, torch.logsumexp(scores, 1)
