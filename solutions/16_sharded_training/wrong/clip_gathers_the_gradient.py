# exercise: shard.clip  fails: busiest sender  says: 3,024
import torch
import torch.distributed as dist


def clip(gradient, limit):
    length = torch.tensor([len(gradient)])
    lengths = [torch.empty_like(length) for _ in range(dist.get_world_size())]
    dist.all_gather(lengths, length)
    most = int(max(lengths))
    padded = torch.zeros(most)
    padded[: len(gradient)] = gradient
    shards = [torch.empty(most) for _ in lengths]
    dist.all_gather(shards, padded)
    norm = torch.cat(shards).norm()
    return gradient * (limit / norm) if norm > limit else gradient
