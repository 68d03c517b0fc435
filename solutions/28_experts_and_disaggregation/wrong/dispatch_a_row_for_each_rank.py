# exercise: experts.dispatch  fails: bytes between nodes, busiest network card  says: rows of one token cross to the same node

import torch
import torch.distributed as dist


def exchange(parts):
    leaving = [len(part) for part in parts]
    coming = torch.empty(len(parts), dtype=torch.int64)
    dist.all_to_all_single(coming, torch.tensor(leaving))
    got = torch.empty(int(coming.sum()), parts[0].shape[1])
    dist.all_to_all_single(got, torch.cat(parts), coming.tolist(), leaving)
    return list(got.split(coming.tolist()))


def dispatch(x, choice, weight, expert, per_node):
    size, width = dist.get_world_size(), x.shape[1]
    gates = torch.zeros(len(x), size * len(expert)).scatter_(1, choice, weight).view(len(x), size, -1)
    rows = [gates[:, peer].any(1).nonzero().flatten() for peer in range(size)]
    parts = [torch.cat([x[r], gates[r, peer]], 1) for peer, r in enumerate(rows)]
    results = [
        torch.einsum("te,etw->tw", part[:, width:], torch.relu(part[:, :width] @ expert))
        for part in exchange(parts)
    ]
    y = torch.zeros_like(x)
    for r, part in zip(rows, exchange(results), strict=True):
        y.index_add_(0, r, part)
    return y
