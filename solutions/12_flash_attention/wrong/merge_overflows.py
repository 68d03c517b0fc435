# exercise: attention.merge  fails: right  says: nan
import math

import torch


def merge(outs, lses):
    weights = torch.exp(lses)
    whole = weights.sum(0)
    shares = weights / whole
    out = torch.bmm(shares.t().unsqueeze(1), outs.transpose(0, 1)).squeeze(1)
    return out, torch.log(whole)
