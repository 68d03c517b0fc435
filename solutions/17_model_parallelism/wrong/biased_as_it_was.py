# exercise: parallel.biased  fails: right  says: y[0, 0]
import torch.distributed as dist
from torch.nn import functional as F


def biased(x, a, a_bias, b, b_bias):
    hidden = F.gelu(x @ a + a_bias)
    y = hidden @ b + b_bias
    dist.all_reduce(y)
    return y
