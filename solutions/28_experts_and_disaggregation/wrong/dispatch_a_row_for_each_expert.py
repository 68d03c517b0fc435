# exercise: experts.dispatch  fails: bytes between nodes  says: naive 147,456

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
    rank, size = dist.get_rank(), dist.get_world_size()
    each = len(expert)
    chosen, order = choice.flatten().sort(stable=True)
    tokens = order // choice.shape[1]
    rows = [tokens[chosen // each == peer] for peer in range(size)]
    which = [chosen[chosen // each == peer] for peer in range(size)]
    parts = [torch.cat([x[r], w[:, None].float()], 1) for r, w in zip(rows, which, strict=True)]
    results = []
    for part in exchange(parts):
        mine = part[:, -1].long() - rank * each
        results.append(torch.relu(torch.einsum("tw,twv->tv", part[:, :-1], expert[mine])))
    y = torch.zeros_like(x)
    for r, w, part in zip(rows, which, exchange(results), strict=True):
        scale = (weight[r] * (choice[r] == w[:, None])).sum(1)
        y.index_add_(0, r, scale[:, None] * part)
    return y
