"""The registers of each block of a chunk, which its warpgroups give back and take, as a record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass
class RegisterPool:
    """`held` (B, G) are the registers of each thread of a warpgroup. `free` (B,) are those that were given
    back, in registers for each thread of one warpgroup."""

    held: Array
    free: Array
