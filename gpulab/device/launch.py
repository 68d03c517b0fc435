"""What a launch is, as data, and who may carry it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from gpulab.compile import CompiledKernel
from gpulab.simt import Allocation, ArrayLabel

if TYPE_CHECKING:
    from .simulated import SimulatedDevice

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


class Executor(Protocol):
    """Who carries out launches and lets the host touch device memory: the simulator, or one in its place.

    A recorder's `launch` notes the launch and runs nothing, and its `host_access` refuses reads, in words.
    """

    def launch(self, device: SimulatedDevice, launch: Launch) -> None:
        """Carry out a launch."""

    def host_access(self, device: SimulatedDevice, allocation: Allocation, writes: bool) -> None:
        """The host is about to read (or write) this memory: raise to refuse."""
