# exercise: collective.reduce_scatter  fails: right  says: was changed before its wait
import torch
import torch.distributed as dist


def reduce_scatter(x):
    rank, size = dist.get_rank(), dist.get_world_size()
    shares = x.tensor_split(size)
    longest = torch.empty_like(shares[0])
    last = shares[rank] if size == 1 else shares[(rank - 1) % size]
    for step in range(1, size):
        into = (rank - step - 1) % size
        buffer = longest[: len(last)]
        buffer.copy_(last)
        sending = dist.isend(buffer, (rank + 1) % size)
        got = torch.empty_like(shares[into])
        dist.recv(got, (rank - 1) % size)
        buffer.zero_()
        sending.wait()
        last = shares[into] + got
    return last.clone()
