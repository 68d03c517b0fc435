# exercise: parallel.ring  fails: right  says: wait for one another
import torch
import torch.distributed as dist


def ring(q, k, v):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    blocks = [torch.stack([k, v])]
    for _ in range(ranks - 1):
        dist.send(blocks[-1], (rank + 1) % ranks)
        blocks.append(torch.empty_like(blocks[0]))
        dist.recv(blocks[-1], (rank - 1) % ranks)
    keys, values = torch.cat(blocks, dim=1)
    return (q @ keys.T / q.shape[1] ** 0.5).softmax(dim=1) @ values
