# exercise: experts.one_shot  fails: steps  says: 2 messages in a row

import torch
import torch.distributed as dist

from gpulab.distributed import symmetric


def one_shot(x):
    rank, size = dist.get_rank(), dist.get_world_size()
    others = [peer for peer in range(size) if peer != rank]
    memory = symmetric.Memory(size + 1, len(x), x.dtype)
    if rank:
        memory.put(0, rank, x)
    else:
        memory.slots[0] = x
        memory.wait(*[(peer, peer) for peer in others])
        total = memory.slots[:size].sum(0, dtype=x.dtype)
        for peer in others:
            memory.put(peer, size, total)
        memory.slots[size] = total
    if rank:
        memory.wait((0, size))
    memory.quiet()
    return memory.slots[size] + torch.zeros_like(x)
