# exercise: parallel.ring  fails: right  says: out
import math

import torch
import torch.distributed as dist


def ring(q, k, v):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    block, largest = torch.stack([k, v]), torch.full((len(q), 1), -math.inf)
    total, out = torch.zeros(len(q), 1), torch.zeros_like(q)
    for turn in range(ranks):
        scores = q @ block[0].T / math.sqrt(q.shape[1])
        new = torch.maximum(largest, scores.max(dim=1, keepdim=True).values)
        total = total + (scores - new).exp().sum(dim=1, keepdim=True)
        out = out + (scores - new).exp() @ block[1]
        largest = new
        if turn < ranks - 1:
            work = dist.isend(block, (rank + 1) % ranks)
            coming = torch.empty_like(block)
            dist.recv(coming, (rank - 1) % ranks)
            work.wait()
            block = coming
    return out / total
