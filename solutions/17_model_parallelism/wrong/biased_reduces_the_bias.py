# exercise: parallel.biased  fails: busiest sender  says: B
import torch
import torch.distributed as dist
from torch.nn import functional as F


def biased(x, a, a_bias, b, b_bias):
    y = F.gelu(x @ a + a_bias) @ b
    dist.all_reduce(y)
    bias = torch.zeros_like(y) + b_bias
    dist.all_reduce(bias)
    return y + bias / dist.get_world_size()
