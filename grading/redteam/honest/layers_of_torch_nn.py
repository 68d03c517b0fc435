# how: functions of torch.nn, and the gradient of the input summed in place
# exercise: parallel.mlp
import torch.distributed as dist
from torch import nn


def mlp(x, a, b, slope):
    hidden = nn.GELU()(torch.matmul(x, a))
    partial = torch.matmul(hidden, b)
    partial.backward(gradient=slope)
    y = partial.detach()
    dist.all_reduce(y, dist.ReduceOp.SUM)
    dist.all_reduce(x.grad)
    return (y, x.grad, a.grad, b.grad)
