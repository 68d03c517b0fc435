# exercise: attention.grouped  fails: bytes  says: 9,
import math

import torch


def grouped(q, k, v):
    k, v = (x.repeat_interleave(len(q) // len(x), dim=0) for x in (k, v))
    return torch.bmm(torch.softmax(torch.bmm(q, k.transpose(1, 2)), -1), v)
