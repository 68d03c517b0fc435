# exercise: compress.shrink  fails: matrix FLOPs  says: A zero is multiplied like any other number
import torch
from torch.nn import functional as F


def shrink(x, up, up_bias, down, down_bias, count):
    stay = (up.norm(dim=1) * down.norm(dim=0)).topk(count).indices
    mask = torch.zeros(len(up))
    mask[stay] = 1.0
    return (F.gelu(x @ up.T + up_bias) * mask) @ down.T + down_bias
