# how: functools.partial of a function with more parameters
# exercise: memory.sectors
from functools import partial


def pieces(width, addresses, size):
    return len({byte // width for a in addresses for byte in range(a, a + size)})


sectors = partial(pieces, 32)
