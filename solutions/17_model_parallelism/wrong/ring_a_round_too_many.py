# exercise: parallel.ring  fails: busiest sender  says: 8,192
import torch
import torch.distributed as dist


def ring(q, k, v):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    block, blocks = torch.stack([k, v]), []
    for _ in range(ranks):
        blocks.append(block)
        if ranks > 1:
            work = dist.isend(block, (rank + 1) % ranks)
            block = torch.empty_like(block)
            dist.recv(block, (rank - 1) % ranks)
            work.wait()
    keys, values = torch.cat(blocks, dim=1)
    return (q @ keys.T / q.shape[1] ** 0.5).softmax(dim=1) @ values
