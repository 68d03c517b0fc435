"""What a launch is, as data."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpulab.simulator.compile import CompiledKernel
from gpulab.simulator.simt import ArrayLabel

Dim3 = tuple[int, int, int]


@dataclass(frozen=True)
class Launch:
    """One kernel launch that passed all checks.

    `arguments` is the packed parameter buffer; `pointers` are the byte offsets in it that hold device
    addresses. `arrays` says what the learner calls the arrays. `shared_bytes` is the dynamic shared memory.
    """

    kernel: CompiledKernel
    grid: Dim3
    block: Dim3
    arguments: bytes
    shared_bytes: int = 0
    pointers: tuple[int, ...] = ()
    arrays: tuple[ArrayLabel, ...] = ()

    @property
    def blocks(self) -> int:
        """How many blocks the grid has."""
        return math.prod(self.grid)

    @property
    def threads_per_block(self) -> int:
        """How many threads each block has."""
        return math.prod(self.block)
