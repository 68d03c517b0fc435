# exercise: shard.clip  fails: right  says: wait for one another
import torch.distributed as dist


def clip(gradient, limit):
    square = gradient.square().sum()
    if square == 0:
        return gradient
    dist.all_reduce(square)
    norm = square.sqrt()
    return gradient * (limit / norm) if norm > limit else gradient
