"""What an instruction's opcode says by itself: its name, modifiers and types, and what kind of step it is."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpulab.simulator.ptx import Instruction

from .types import DTYPES

Function = Callable[..., Any]  # arrays → an array, or a tuple of them

SMALL_TYPES = {
    *("f16x2", "f32x2", "bf16", "bf16x2", "tf32", "e4m3", "e5m2"),
    *("e2m3", "e3m2", "e2m1", "ue8m0", "ue4m3"),
    *("e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "e2m1x2", "ue8m0x2"),
    *("e4m3x4", "e5m2x4", "e2m3x4", "e3m2x4", "e2m1x4"),
}
TYPES = frozenset(DTYPES) | SMALL_TYPES | {"b128"}

# Where lanes may have to wait for others a segment of its own begins.
MEETING = frozenset({"bar", "barrier", "shfl", "vote", "match", "redux", "elect"})
WARPGROUP = frozenset({"wgmma", "setmaxnreg"})  # … and of those in a row that four warps run together
JUMPS = frozenset({"bra", "brx", "ret", "exit", "trap"})
LOOKING = frozenset({"atom", "red", "membar", "fence", "nanosleep", "mbarrier"})


@dataclass(frozen=True, slots=True)
class Opcode:
    """A dotted opcode taken apart: ``mad.lo.cc.u32`` → name mad, modifiers {lo, cc}, types (u32,)."""

    name: str
    modifiers: frozenset[str]
    types: tuple[str, ...]
    instruction: Instruction

    @property
    def type(self) -> str:
        return self.types[-1]

    @property
    def dtype(self) -> np.dtype:
        return DTYPES[self.types[-1]]

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "f"


@dataclass(frozen=True, slots=True)
class Operation:
    """One arithmetic operation bound to its types: `run(*sources)` → one array, or a tuple of them.

    `flops` is what one lane's execution counts as. `carry_in`, `carry_out`: uses the carry flag as last
    source / last result.
    """

    run: Function
    reads: tuple[np.dtype, ...]
    writes: tuple[np.dtype, ...]
    flops: int = 0
    carry_in: bool = False
    carry_out: bool = False


class MatrixShape(NamedTuple):
    """A matrix operation multiplies an m × k matrix by a k × n matrix."""

    m: int
    n: int
    k: int


def opcode(instruction: Instruction) -> Opcode:
    """Take an instruction's opcode apart."""
    name, *rest = instruction.parts
    types = tuple(part for part in rest if part in TYPES)
    return Opcode(name, frozenset(part for part in rest if part not in TYPES), types, instruction)


def matrix_shape(instruction: Instruction) -> MatrixShape | None:
    """The shape of a matrix operation such as ``mma.sync.aligned.m16n8k16…``."""
    found = re.search(r"\.m(\d+)n(\d+)k(\d+)(?:\.|$)", instruction.opcode)
    return None if found is None else MatrixShape(*map(int, found.groups()))


def is_volatile(instruction: Instruction) -> bool:
    """Whether another thread may change what this load sees, by the kernel's own word."""
    if instruction.parts[0] == "mbarrier":
        return instruction.parts[1] in ("test_wait", "try_wait")
    return instruction.parts[0] == "ld" and bool({"volatile", "acquire", "relaxed"} & set(instruction.parts))


def looks(instruction: Instruction) -> bool:
    """Whether what another thread has done to memory may show here."""
    return instruction.parts[0] in LOOKING or is_volatile(instruction)


def is_aligned(barrier: Instruction) -> bool:
    """Whether all threads must run this very instruction to meet: ``bar`` is short for that."""
    return barrier.parts[0] == "bar" or "aligned" in barrier.parts
