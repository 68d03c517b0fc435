# exercise: attention.grouped  fails: right  says: should be
import math

import torch


def grouped(q, k, v):
    k, v = (x[:1].expand(len(q), -1, -1) for x in (k, v))
    return torch.bmm(torch.softmax(torch.bmm(q, k.transpose(1, 2)), -1), v)
