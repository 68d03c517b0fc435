# exercise: attention.steady  fails: right  says: 4 parts of 9 × 8
import torch


def steady(outs, lses):
    outs, lses = outs.double(), lses.double()
    largest = lses.amax(0)
    weights = torch.exp(lses - largest)
    weighted = weights[:, :, None] * outs
    rest = weights.sum(0) - weights
    out = (weighted.sum(0) - weighted) / rest[:, :, None]
    return out.float(), (largest + torch.log(rest)).float()
