# exercise: experts.one_shot  fails: right  says: memory.quiet()

import torch.distributed as dist

from gpulab.distributed import symmetric


def one_shot(x):
    rank, size = dist.get_rank(), dist.get_world_size()
    memory = symmetric.Memory(size, len(x), x.dtype)
    others = [peer for peer in range(size) if peer != rank]
    for peer in others:
        memory.put(peer, rank, x)
    memory.slots[rank] = x
    memory.wait(*((peer, peer) for peer in others))
    return memory.slots.sum(0, dtype=x.dtype)
