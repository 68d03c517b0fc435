# exercise: collective.all_reduce  fails: busiest sender  says: 12,276 bytes
import torch
import torch.distributed as dist


def all_reduce(x):
    rank, size = dist.get_rank(), dist.get_world_size()
    total, got = x.clone(), torch.empty_like(x)
    if rank == 0:
        for other in range(1, size):
            dist.recv(got, other)
            total += got
        for other in range(1, size):
            dist.send(total, other)
    else:
        dist.send(x, 0)
        dist.recv(total, 0)
    return total
