# exercise: parallel.loss  fails: busiest sender  says: 196,608
import torch
import torch.distributed as dist
from torch.nn import functional as F


def loss(hidden, table, labels):
    mine = hidden @ table.T
    parts = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, mine)
    return F.cross_entropy(torch.cat(parts, dim=1), labels, reduction="none")
