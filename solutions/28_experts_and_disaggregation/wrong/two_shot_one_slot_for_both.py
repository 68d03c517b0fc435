# exercise: experts.two_shot  fails: right  says: addend of rank

import torch
import torch.distributed as dist

from gpulab.distributed import symmetric


def two_shot(x):
    rank, size = dist.get_rank(), dist.get_world_size()
    others = [peer for peer in range(size) if peer != rank]
    share = -(-len(x) // size)
    shares = torch.nn.functional.pad(x, (0, share * size - len(x))).view(size, share)
    memory = symmetric.Memory(size, share, x.dtype)
    for peer in others:
        memory.put(peer, rank, shares[peer])
    memory.slots[rank] = shares[rank]
    memory.wait(*[(peer, peer) for peer in others])
    mine = memory.slots[:size].sum(0, dtype=x.dtype)
    for peer in others:
        memory.put(peer, rank, mine)
    memory.slots[rank] = shares[rank]
    memory.wait(*[(peer, peer) for peer in others])
    memory.quiet()
    return memory.slots[:size].flatten()[: len(x)]
