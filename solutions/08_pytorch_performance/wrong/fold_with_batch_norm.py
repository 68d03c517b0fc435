# exercise: pytorch.fold  fails: right  says: not on this exercise's list
import torch


def fold(x, mean, std, weight, bias):
    return torch.nn.functional.batch_norm(x, mean, std * std, weight, bias, eps=0.0)
