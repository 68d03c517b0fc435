# exercise: collective.reduce_scatter  fails: right  says: of rank 1 is missing
import torch
import torch.distributed as dist


def reduce_scatter(x):
    rank, size = dist.get_rank(), dist.get_world_size()
    shares = [share.clone() for share in x.tensor_split(size)]
    for step in range(size - 1):
        out, into = (rank - step) % size, (rank - step - 1) % size
        sending = dist.isend(shares[out], (rank + 1) % size)
        got = torch.empty_like(shares[into])
        dist.recv(got, (rank - 1) % size)
        sending.wait()
        shares[into] += got
    return shares[rank]
