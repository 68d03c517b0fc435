# exercise: parallel.loss  fails: right  says: losses
import torch
import torch.distributed as dist


def loss(hidden, table, labels):
    logits = hidden @ table.T
    largest = logits.max(dim=1).values  # of this rank's words only
    place = labels - dist.get_rank() * len(table)
    here = (place >= 0) & (place < len(table))
    own = logits.gather(1, place.clamp(0, len(table) - 1)[:, None])[:, 0]
    both = torch.stack([(logits - largest[:, None]).exp().sum(dim=1), torch.where(here, own, 0.0)])
    dist.all_reduce(both)
    return both[0].log() + largest - both[1]
