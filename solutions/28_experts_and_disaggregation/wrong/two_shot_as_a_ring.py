# exercise: experts.two_shot  fails: steps  says: 6 messages in a row

import torch
import torch.distributed as dist

from gpulab.distributed import symmetric


def two_shot(x):
    rank, size = dist.get_rank(), dist.get_world_size()
    share = -(-len(x) // size)
    shares = torch.nn.functional.pad(x, (0, share * size - len(x))).view(size, share).clone()
    memory = symmetric.Memory(2 * size, share, x.dtype)
    following, before = (rank + 1) % size, (rank - 1) % size
    for step in range(size - 1):
        memory.put(following, step, shares[(rank - step) % size])
        memory.wait((before, step))
        shares[(rank - step - 1) % size] += memory.slots[step]
    for step in range(size - 1):
        memory.put(following, size + step, shares[(rank + 1 - step) % size])
        memory.wait((before, size + step))
        shares[(rank - step) % size] = memory.slots[size + step]
    memory.quiet()
    return shares.flatten()[: len(x)]
