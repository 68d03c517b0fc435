"""Wrong kernels and their mended twins, by what is wrong with them."""

from . import bad_memory, global_races, harmless, meeting, order, shared_races, unwritten

NUMBA = [
    pair
    for module in (shared_races, global_races, bad_memory, unwritten, meeting, order, harmless)
    for pair in module.PAIRS
]
