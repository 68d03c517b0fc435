# exercise: shard.zero2_step  fails: busiest sender  says: 4,608
import torch
import torch.distributed as dist


def zero2_step(gradient, master, momentum, variance, step):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    whole = gradient.clone()
    dist.all_reduce(whole)
    mean = whole.chunk(ranks)[rank].float() / ranks
    momentum.mul_(0.9).add_(mean, alpha=0.1)
    variance.mul_(0.999).addcmul_(mean, mean, value=0.001)
    root = (variance / (1 - 0.999**step)).sqrt() + 1e-8
    master.sub_(0.01 * momentum / (1 - 0.9**step) / root)
    weights = torch.empty_like(gradient)
    dist.all_gather(list(weights.chunk(ranks)), master.half())
    return weights
