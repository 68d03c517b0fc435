# exercise: collective.reduce_scatter  fails: right  says: all_reduce
import torch
import torch.distributed as dist


def reduce_scatter(x):
    total = x.clone()
    dist.all_reduce(total)
    return total.tensor_split(dist.get_world_size())[dist.get_rank()].clone()
