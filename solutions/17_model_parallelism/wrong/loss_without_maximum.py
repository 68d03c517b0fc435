# exercise: parallel.loss  fails: right  says: inf
import torch
import torch.distributed as dist


def loss(hidden, table, labels):
    logits = hidden @ table.T
    place = labels - dist.get_rank() * len(table)
    here = (place >= 0) & (place < len(table))
    own = logits.gather(1, place.clamp(0, len(table) - 1)[:, None])[:, 0]
    both = torch.stack([logits.exp().sum(dim=1), torch.where(here, own, 0.0)])
    dist.all_reduce(both)
    return both[0].log() - both[1]
