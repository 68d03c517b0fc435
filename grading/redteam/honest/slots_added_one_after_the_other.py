# how: puts to its neighbours in turn, and adds slot after slot by a reduction of its own
# exercise: experts.one_shot
from functools import reduce


def one_shot(x):
    rank, size = dist.get_rank(), dist.get_world_size()
    memory = symmetric.Memory(size, x.numel(), x.dtype)
    to = [(rank + i) % size for i in range(1, size)]
    list(map(lambda peer: memory.put(peer, rank, x), to))
    memory.wait(*zip(to, to, strict=True))
    total = reduce(lambda so_far, peer: so_far + memory.slots[peer], to, x)
    memory.quiet()
    return total
