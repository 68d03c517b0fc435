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
    `cluster` is the shape of the clusters that the launch asks for; None leaves that to the kernel.
    `scratch` is (offset in the buffer of a pointer, bytes): memory that is there while the kernel runs.
    """

    kernel: CompiledKernel
    grid: Dim3
    block: Dim3
    arguments: bytes
    shared_bytes: int = 0
    pointers: tuple[int, ...] = ()
    arrays: tuple[ArrayLabel, ...] = ()
    cluster: Dim3 | None = None
    scratch: tuple[int, int] | None = None

    @property
    def blocks(self) -> int:
        """How many blocks the grid has."""
        return math.prod(self.grid)

    @property
    def threads_per_block(self) -> int:
        """How many threads each block has."""
        return math.prod(self.block)
