# exercise: attention.merge  fails: right  says: should be
import math

import torch


def merge(outs, lses):
    largest = lses.amax(0)
    largest = torch.where(largest > -math.inf, largest, 0.0)
    weights = torch.exp(lses - largest)
    whole = weights.sum(0)
    return outs.mean(0), largest + torch.log(whole)
