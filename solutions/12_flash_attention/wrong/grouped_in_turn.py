# exercise: attention.grouped  fails: right  says: should be
import math

import torch


def grouped(q, k, v):
    each = len(q) // len(k)
    k, v = k.repeat(each, 1, 1), v.repeat(each, 1, 1)
    return torch.bmm(torch.softmax(torch.bmm(q, k.transpose(1, 2)), -1), v)
