# exercise: attention.steady  fails: right  says: 5 parts of 12 × 8
import torch


def steady(outs, lses):
    largest = lses.amax(0)
    weights = torch.exp(lses - largest)
    weighted = weights[:, :, None] * outs
    rest = (weights.sum(0) - weights).clamp(min=1e-30)
    return (weighted.sum(0) - weighted) / rest[:, :, None], largest + torch.log(rest)
