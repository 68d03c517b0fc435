# exercise: parallel.mlp  fails: busiest sender  says: 18,432
import torch
import torch.distributed as dist
from torch.nn import functional as F


def summed(part):
    parts = [torch.empty_like(part) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, part)
    return sum(parts)


def mlp(x, a, b, slope):
    part = F.gelu(x @ a) @ b
    part.backward(slope)
    return [summed(part.detach()), summed(x.grad), a.grad, b.grad]
