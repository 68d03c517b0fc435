# exercise: shard.zero2_step  fails: busiest sender  says: 4,608
import torch
import torch.distributed as dist


def zero2_step(gradient, master, momentum, variance, step):
    ranks = dist.get_world_size()
    share = torch.empty(len(master), dtype=gradient.dtype)
    dist.reduce_scatter(share, list(gradient.chunk(ranks)))
    mean = share.float() / ranks
    momentum.mul_(0.9).add_(mean, alpha=0.1)
    variance.mul_(0.999).addcmul_(mean, mean, value=0.001)
    root = (variance / (1 - 0.999**step)).sqrt() + 1e-8
    master.sub_(0.01 * momentum / (1 - 0.9**step) / root)
    weights = torch.empty(len(gradient))
    dist.all_gather(list(weights.chunk(ranks)), master)
    return weights.half()
