"""Wrong kernels and their mended twins, by what is wrong with them."""

from . import bad_memory, global_races, harmless, in_cuda_c, meeting, order, shared_races, unwritten

ALL = [
    pair
    for module in (
        shared_races, global_races, bad_memory, unwritten, meeting, order, harmless, in_cuda_c,
    )
    for pair in module.PAIRS
]  # fmt: skip
