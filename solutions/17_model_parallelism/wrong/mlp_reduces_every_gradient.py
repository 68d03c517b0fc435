# exercise: parallel.mlp  fails: right  says: da
import torch.distributed as dist
from torch.nn import functional as F


def mlp(x, a, b, slope):
    part = F.gelu(x @ a) @ b
    y = part.detach().clone()
    dist.all_reduce(y)
    part.backward(slope)
    for leaf in (x, a, b):
        dist.all_reduce(leaf.grad)
    return [y, x.grad, a.grad, b.grad]
