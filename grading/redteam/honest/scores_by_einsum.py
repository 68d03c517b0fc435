# how: einsum weighs the parts, logsumexp combines their sums, and isinf finds empty rows
# exercise: attention.merge
import math

import torch


def merge(outs, lses):
    total = torch.logsumexp(lses, dim=0)
    safe = torch.where(torch.isinf(total), torch.zeros_like(total), total)
    shares = torch.exp(lses - safe)
    return torch.einsum("pn,pnd->nd", shares, outs), total
