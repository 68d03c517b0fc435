# exercise: attention.merge  fails: right  says: nan
import math

import torch


def merge(outs, lses):
    largest = lses.amax(0)
    weights = torch.exp(lses - largest)
    whole = weights.sum(0)
    shares = weights / whole.clamp(min=1)
    out = torch.bmm(shares.t().unsqueeze(1), outs.transpose(0, 1)).squeeze(1)
    return out, largest + torch.log(whole)
