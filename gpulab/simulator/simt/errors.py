"""What a kernel can do wrong, as messages to a person: kernel, line with its text, block, thread, array,
index."""

from __future__ import annotations

import linecache
import re
from dataclasses import dataclass, fields
from typing import Any

from gpulab.simulator.ptx import Location

Index = tuple[int, int, int]


@dataclass(frozen=True)
class ArrayLabel:
    """What a learner calls a piece of device memory. `strides` in bytes; `dtype` a NumPy name."""

    name: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    itemsize: int

    @property
    def extent(self) -> int:
        """Bytes from the first to behind the last element; 0 for an empty array. Strides are not negative."""
        if 0 in self.shape:
            return 0
        return sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)) + self.itemsize

    def index_of(self, address: int) -> tuple[int, ...]:
        """The index whose element holds `address`. Outside the array it is the outermost index that runs
        over."""
        rest = address - self.address
        index = [0] * len(self.shape)
        for axis in sorted(range(len(self.strides)), key=lambda a: -self.strides[a]):
            if self.strides[axis]:
                index[axis], rest = divmod(rest, self.strides[axis])
        return tuple(index)

    def __str__(self) -> str:
        size = " × ".join(str(n) for n in self.shape)
        return f"{self.name} ({size} {self.dtype})"


def source_text(location: Location | None) -> str:
    """The text of a source line without its indent; empty where the source is not to be had."""
    if location is None:
        return ""
    return linecache.getline(location.file, location.line).strip()


def indexed_names(location: Location | None) -> set[str]:
    """The names before an opening bracket in a source line, or first in an atomic: arrays, most likely."""
    text = source_text(location)
    atomics = re.findall(r"atomic(?:\.\w+|[A-Z]\w*)\(\s*&?\s*([A-Za-z_]\w*)", text)
    return {*re.findall(r"([A-Za-z_]\w*)\s*\[", text), *atomics}


def indexes_axes(location: Location | None) -> bool:
    """A source line has several indices in one bracket, as Python does and C++ does not."""
    return re.search(r"\w\[[^\]]*,", source_text(location)) is not None


def index_of(linear: int, extent: Index) -> Index:
    """The index (x, y, z) of the `linear`-th thread of a block, or block of a grid: x counts fastest.

    >>> index_of(70, (32, 2, 4))
    (6, 0, 1)
    """
    x, y, _ = extent
    return int(linear % x), int(linear // x % y), int(linear // (x * y))


def thread_words(thread: Index, block: Index) -> str:
    """``thread (31, 0, 0) of block (3, 0, 0)``."""
    return f"thread {thread} of block {block}"


class SimulationError(Exception):
    """Base of everything that the simulator says to a person."""


class UnsupportedInstruction(SimulationError):
    """An instruction that the simulator cannot run, with the source line that it came from."""

    def __init__(
        self, opcode: str, kernel: str, location: Location | None = None, line: int = 0, hint: str = ""
    ):
        self.opcode, self.kernel, self.location, self.line, self.hint = opcode, kernel, location, line, hint
        place = f", line {location.line}: {source_text(location)}" if location else ""
        super().__init__(
            f"{kernel}{place} — the simulator does not know the PTX instruction {opcode} (PTX line {line})."
            + (f" {hint}" if hint else "")
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.opcode, self.kernel, self.location, self.line, self.hint)


@dataclass(frozen=True)
class Outside:
    """An element that is not there: an array's name and shape, the `index`, and `did`: ``read`` or
    ``wrote``."""

    array: str
    shape: tuple[int, ...]
    index: tuple[int, ...]
    did: str


@dataclass(eq=False)
class KernelFault(SimulationError):
    """A kernel did something that no device allows. `block` and `thread` are those of the first offender."""

    kernel: str
    location: Location | None
    what: str
    block: Index | None = None
    thread: Index | None = None
    others: int = 0
    advice: str = ""
    elsewhere: Location | None = None  # another line that has part in it
    outside: Outside | None = None  # of an access beyond an array that has a name
    linear: tuple[int, int] | None = None  # block and thread, counted within the grid and the block

    title = "Fault"

    def __post_init__(self) -> None:
        Exception.__init__(self, str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    @property
    def text(self) -> str:
        return source_text(self.location)

    def __str__(self) -> str:
        place = f", line {self.location.line}" if self.location else ""
        lines = [f"{self.title} in kernel {self.kernel}{place}"]
        if self.location and self.text:
            lines.append(f"    {self.location.line} │ {self.text}")
        who = f"{thread_words(self.thread, self.block)} " if self.thread and self.block else ""
        lines.append(f"{who}{self.what}")
        if self.others:
            lines.append(f"{self.others:,} more thread{'s' if self.others > 1 else ''} did so.")
        if self.advice:
            lines.append(self.advice)
        return "\n".join(lines)


class OutOfBounds(KernelFault):
    """An access outside every array."""

    title = "OutOfBounds"


class Misaligned(KernelFault):
    """An access whose address is no multiple of its size."""

    title = "Misaligned access"


class DivergentBarrier(KernelFault):
    """Threads of one block wait at different barriers, or at one that the others cannot reach."""

    title = "Divergent barrier"


class WrongBarrier(KernelFault):
    """An mbarrier that is not initialised, or at which more threads arrive than it was made for."""

    title = "Wrong use of an mbarrier"


class WrongDescriptor(KernelFault):
    """A tensor map that breaks a rule, or a copy that does not fit its map."""

    title = "Wrong tensor map"


class WrongMatrix(KernelFault):
    """A matrix operation whose operands cannot be what it needs."""

    title = "Wrong use of a matrix operation"


class WrongTensorMemory(KernelFault):
    """Tensor Memory that is not allocated, not freed, or out of a warp's reach."""

    title = "Wrong use of Tensor Memory"


class StackOverflow(KernelFault):
    """More calls are open, one inside the other, than a thread's stack has room for."""

    title = "Stack overflow"


class NoFunction(KernelFault):
    """A call of an address at which no function is."""

    title = "Call of no function"


class WrongFree(KernelFault):
    """``free`` or ``delete`` of what is no block of the kernels' heap, or no longer one."""

    title = "Wrong free()"


class WrongTexture(KernelFault):
    """A texture or surface that does not exist, or whose memory is gone."""

    title = "Wrong texture"


class WrongRegisters(KernelFault):
    """``setmaxnreg`` for more registers than the block has, or in the wrong direction."""

    title = "Wrong number of registers"


class Endless(KernelFault):
    """The kernel waits for something that cannot come, or goes round a loop forever."""

    title = "No end"


class StillRunning(Endless):
    """The kernel ran into the instruction limit: it may be endless, or only long."""


class Trap(KernelFault):
    """The kernel stopped itself: ``trap``, a failed assertion, an exception raised in numba's debug mode."""

    title = "Stopped"
