# exercise: shard.zero2_step  fails: right  says: master
import torch
import torch.distributed as dist


def zero2_step(gradient, master, momentum, variance, step):
    ranks = dist.get_world_size()
    share = torch.empty(len(master), dtype=gradient.dtype)
    dist.reduce_scatter(share, list(gradient.chunk(ranks)))
    mean = share.float() / ranks
    momentum = 0.9 * momentum + 0.1 * mean
    variance = 0.999 * variance + 0.001 * mean**2
    root = (variance / (1 - 0.999**step)).sqrt() + 1e-8
    master = master - 0.01 * momentum / (1 - 0.9**step) / root
    weights = torch.empty_like(gradient)
    dist.all_gather(list(weights.chunk(ranks)), master.half())
    return weights
