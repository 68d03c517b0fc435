# exercise: parallel.mlp  fails: right  says: dx
import torch.distributed as dist
from torch.nn import functional as F


def mlp(x, a, b, slope):
    part = F.gelu(x @ a) @ b
    y = part.detach().clone()
    dist.all_reduce(y)
    part.backward(slope)
    return [y, x.grad, a.grad, b.grad]
