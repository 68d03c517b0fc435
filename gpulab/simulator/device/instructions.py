"""Instructions that not every GPU has, and what takes their place on the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gpulab.simulator.hardware import GPU
from gpulab.simulator.ptx import Instruction

from .checks import LaunchError


class Need(NamedTuple):
    """The GPUs that have an instruction: from capability `first` on, up to `last` if that is given.

    `instead` says what a kernel for other GPUs uses.
    """

    first: tuple[int, int]
    instead: str
    last: tuple[int, int] | None = None

    def met_by(self, cc: tuple[int, int]) -> bool:
        """Whether a GPU of capability `cc` has the instruction."""
        return self.first <= cc and (self.last is None or cc <= self.last)

    def __str__(self) -> str:
        first = ".".join(map(str, self.first))
        if self.last is None:
            return f"{first} or later"
        last = ".".join(map(str, self.last))
        return first if first == last else f"{first} to {last}"


_MMA = "every GPU from 8.0 on has mma.sync"
# By the beginning of the opcode (PTX ISA, "Target ISA Notes" of each instruction).
NEEDS: dict[tuple[str, ...], Need] = {
    ("wgmma",): Need((9, 0), f"Blackwell (10.0) has tcgen05 in its place, and {_MMA}.", (9, 0)),
    ("tcgen05",): Need((10, 0), f"Hopper (9.0) has wgmma in its place, and {_MMA}.", (10, 3)),
    ("clusterlaunchcontrol",): Need(
        (10, 0), "Let blocks draw their next tile from a counter in global memory."
    ),
    ("setmaxnreg",): Need((9, 0), "Leave it out: it only moves registers between warps."),
    ("cp", "async", "bulk"): Need((9, 0), "cp.async copies up to 16 bytes for each thread, from 8.0 on."),
    ("barrier", "cluster"): Need((9, 0), "Without clusters, blocks meet in global memory or not at all."),
    ("mapa",): Need((9, 0), "Without clusters, blocks exchange data in global memory."),
    ("mbarrier", "try_wait"): Need((9, 0), "mbarrier.test_wait in a loop does the same, from 8.0 on."),
    ("mbarrier",): Need((8, 0), "__syncthreads() makes all threads of a block wait."),
    ("cp", "async"): Need((8, 0), "Load to registers and store to shared memory."),
}

_HEADERS = "The functions of {} work it out in integers on older GPUs."
# Of ``cvt``, by a type that it converts to or from.
CONVERSIONS: dict[str, Need] = {
    **{form: Need((8, 9), _HEADERS.format("cuda_fp8.h")) for form in ("e4m3x2", "e5m2x2")},
    **{form: Need((10, 0), _HEADERS.format("cuda_fp6.h")) for form in ("e2m3x2", "e3m2x2")},
    "e2m1x2": Need((10, 0), _HEADERS.format("cuda_fp4.h")),
    "ue8m0x2": Need((10, 0), _HEADERS.format("cuda_fp8.h")),
}


def _need(instruction: Instruction) -> tuple[str, Need] | None:
    """What an instruction is called in a message, and which GPUs have it; None if all have."""
    parts = instruction.parts
    if parts[0] == "cvt":
        return next(((f"cvt of {part}", CONVERSIONS[part]) for part in parts if part in CONVERSIONS), None)
    key = next((key for n in (3, 2, 1) if (key := parts[:n]) in NEEDS), None)
    return None if key is None else (".".join(parts[: max(2, len(key))]), NEEDS[key])


def check_instructions(kernel: str, instructions: Iterable[Instruction], gpu: GPU) -> None:
    """Raises LaunchError for the first instruction that `gpu` does not have.

    `kernel` is what the message calls the kernel.
    """
    for instruction in instructions:
        needed = _need(instruction)
        if needed is None or needed[1].met_by(gpu.cc):
            continue
        name, need = needed
        line = f", line {instruction.location.line}" if instruction.location else ""
        raise LaunchError(
            f"{kernel}{line}: {name} is an instruction of GPUs of compute "
            f"capability {need}; the {gpu} has {gpu.cc[0]}.{gpu.cc[1]}. {need.instead}"
        )
