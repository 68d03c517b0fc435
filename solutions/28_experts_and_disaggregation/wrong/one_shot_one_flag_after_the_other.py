# exercise: experts.one_shot  fails: steps  says: 3 messages in a row

import torch.distributed as dist

from gpulab.distributed import symmetric


def one_shot(x):
    rank, size = dist.get_rank(), dist.get_world_size()
    memory = symmetric.Memory(size, len(x), x.dtype)
    others = [peer for peer in range(size) if peer != rank]
    for peer in others:
        memory.put(peer, rank, x)
    memory.slots[rank] = x
    for peer in others:
        memory.wait((peer, peer))
    memory.quiet()
    return memory.slots.sum(0, dtype=x.dtype)
