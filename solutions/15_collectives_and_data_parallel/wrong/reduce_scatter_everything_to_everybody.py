# exercise: collective.reduce_scatter  fails: busiest sender  says: 12,276 bytes
import torch
import torch.distributed as dist


def reduce_scatter(x):
    rank, size = dist.get_rank(), dist.get_world_size()
    others = [other for other in range(size) if other != rank]
    sending = [dist.isend(x, other) for other in others]
    total, got = x.clone(), torch.empty_like(x)
    for other in others:
        dist.recv(got, other)
        total += got
    for work in sending:
        work.wait()
    return total.tensor_split(size)[rank].clone()
