# exercise: attention.merge  fails: bytes  says: 3,
import math

import torch


def merge(outs, lses):
    largest = lses.amax(0)
    largest = torch.where(largest > -math.inf, largest, 0.0)
    weights = torch.exp(lses - largest)
    whole = weights.sum(0)
    shares = weights / whole.clamp(min=1)
    out = (shares[:, :, None] * outs).sum(0)
    return out, largest + torch.log(whole)
