# exercise: collective.all_reduce  fails: right  says: invalid for input of size 10
import torch
import torch.distributed as dist


def all_reduce(x):
    rank, size = dist.get_rank(), dist.get_world_size()
    shares = list(x.clone().view(size, -1))
    for step in range(2 * (size - 1)):
        out, into = (rank - step) % size, (rank - step - 1) % size
        sending = dist.isend(shares[out], (rank + 1) % size)
        got = torch.empty_like(shares[into])
        dist.recv(got, (rank - 1) % size)
        sending.wait()
        shares[into] = shares[into] + got if step < size - 1 else got
    return torch.cat(shares)
