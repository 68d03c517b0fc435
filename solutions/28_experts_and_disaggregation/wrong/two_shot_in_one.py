# exercise: experts.two_shot  fails: busiest sender  says: 4,100 b to rank 0

import torch.distributed as dist

from gpulab.distributed import symmetric


def two_shot(x):
    rank, size = dist.get_rank(), dist.get_world_size()
    memory = symmetric.Memory(size, len(x), x.dtype)
    others = [peer for peer in range(size) if peer != rank]
    for peer in others:
        memory.put(peer, rank, x)
    memory.slots[rank] = x
    memory.wait(*[(peer, peer) for peer in others])
    memory.quiet()
    return memory.slots.sum(0, dtype=x.dtype)
