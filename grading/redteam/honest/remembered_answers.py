# how: a cache in front of the function, and a recursive helper
# exercise: memory.sectors
from functools import lru_cache


@lru_cache(maxsize=None)
def of(address, size):
    return frozenset([address // 32]) if size == 1 else of(address, size - 1) | {(address + size - 1) // 32}


def sectors(addresses, size):
    found = frozenset()
    for address in addresses:
        found |= of(address, size)
    return len(found)
