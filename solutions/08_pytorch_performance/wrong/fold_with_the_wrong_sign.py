# exercise: pytorch.fold  fails: right  says: should be
import torch


def fold(x, mean, std, weight, bias):
    scale = weight / std
    return torch.addcmul(bias + mean * scale, x, scale)
