# exercise: shard.clip  fails: right  says: nan
import torch.distributed as dist


def clip(gradient, limit):
    square = gradient.square().sum()
    dist.all_reduce(square)
    scale = limit / square.sqrt()
    return gradient * scale - gradient * (scale - 1).clamp(min=0)
