# exercise: compress.shrink  fails: right  says: should be
import torch
from torch.nn import functional as F


def shrink(x, up, up_bias, down, down_bias, count):
    stay = (up.norm(dim=1) * down.norm(dim=0)).topk(count).indices
    mask = torch.zeros(len(up))
    mask[stay] = 1.0
    return F.gelu(x @ (up * mask[:, None]).T + up_bias) @ down.T + down_bias
