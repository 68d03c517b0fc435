# exercise: collective.all_reduce  fails: busiest sender  says: 12,276 bytes
import torch
import torch.distributed as dist


def all_reduce(x):
    rank, size = dist.get_rank(), dist.get_world_size()
    total, passing = x.clone(), x.clone()
    for _ in range(size - 1):
        got = torch.empty_like(x)
        sending = dist.isend(passing, (rank + 1) % size)
        dist.recv(got, (rank - 1) % size)
        sending.wait()
        total += got
        passing = got
    return total
