# exercise: parallel.ring  fails: steps  says: 6 steps
import torch
import torch.distributed as dist


def ring(q, k, v):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    blocks = [torch.stack([k, v])]
    for _ in range(ranks - 1):
        coming = torch.empty_like(blocks[0])
        calls = [
            lambda coming=coming: dist.recv(coming, (rank - 1) % ranks),
            lambda: dist.send(blocks[-1], (rank + 1) % ranks),
        ]
        for call in calls if rank % 2 else calls[::-1]:
            call()
        blocks.append(coming)
    keys, values = torch.cat(blocks, dim=1)
    return (q @ keys.T / q.shape[1] ** 0.5).softmax(dim=1) @ values
