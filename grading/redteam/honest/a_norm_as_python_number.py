# how: everybody's square is gathered and added up in float32
# exercise: shard.clip
import torch.distributed as dist


def clip(gradient, limit):
    mine = torch.linalg.vector_norm(gradient).square().reshape(1)
    dist.all_reduce(mine, op=dist.ReduceOp.SUM)
    norm = mine.sqrt().item()
    return gradient * min(1.0, limit / norm) if norm > 0 else gradient.clone()
