# exercise: shard.clip  fails: right  says: clipped[
import torch.distributed as dist


def clip(gradient, limit):
    norm = gradient.norm()
    dist.all_reduce(norm)
    return gradient * (limit / norm) if norm > limit else gradient
