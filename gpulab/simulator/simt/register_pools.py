"""The registers of each block of a chunk, which its warps give back and take, as a record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass
class RegisterPool:
    """`held` (B, W) are the registers of each thread of a warp. `free` (B,) are those that were given back,
    in registers for each thread of one warp."""

    held: Array
    free: Array
