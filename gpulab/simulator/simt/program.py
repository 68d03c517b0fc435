"""A kernel made ready to run, as records: its segments, where each of them leads, and what lies in registers
and memory.

`decoding.load` makes them. What a run changes lives in `run.Run`; a program is never changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple

import numpy as np

from gpulab.simulator.ptx import Instruction, Module

Array = np.ndarray


class Source(NamedTuple):
    """An operand that is read: a register slot, and what turns its content into the wanted type (None: it has
    that type already)."""

    slot: int
    view: Callable[[Array], Array] | None = None

    def value(self, registers: list[Array]) -> Array:
        content = registers[self.slot]
        return content if self.view is None else self.view(content)


# ---- segments ------------------------------------------------------------------------------------


class Stop(Enum):
    """An end of a lane's way through the program."""

    EXIT = "exit"
    TRAP = "trap"
    ENDLESS = "endless"  # an empty loop: nobody ever leaves it


Kind = Literal["plain", "barrier", "warp", "warpgroup", "cluster"]
Target = int | Stop  # the segment that lanes go on to, if there is one


class Branch(NamedTuple):
    """Lanes whose predicate in slot `guard` holds (does not hold, if `negated`) go to `taken`."""

    guard: int
    negated: bool
    taken: Target
    other: Target


class Table(NamedTuple):
    """Each lane goes to the target whose number is in its register `slot`."""

    slot: int
    targets: tuple[int, ...]


End = Target | Branch | Table


@dataclass(frozen=True, slots=True)
class Meeting:
    """What lanes do together at a barrier or a ``*.sync`` operation of a warp.

    `key` tells which meetings may join; `mask` is the operand with the members of a warp, or a barrier's
    number. `compute(inputs…, members)` works on arrays of shape (B, W, 32) for a warp, (B, T) for a block,
    and returns one array for each register slot of `outputs` (None is the sink).
    """

    key: str
    mask: Source
    inputs: tuple[Source, ...] = ()
    outputs: tuple[int | None, ...] = ()
    compute: Callable[..., list[Array]] | None = None
    count: Source | None = None  # barriers: how many threads take part, where it is not all
    waits: bool = True  # barriers: False where threads only say that they have come
    sources: Callable[..., Array] | None = None  # shuffles: from the inputs to the lane that each lane reads

    def given(self, registers: list[Array]) -> list[Array]:
        return [source.value(registers) for source in self.inputs]


@dataclass(frozen=True, slots=True)
class Segment:
    """Instructions first … stop-1, always run together. `live` has a bit for each register slot that a lane
    waiting here still needs."""

    first: int
    stop: int
    kind: Kind
    end: End
    live: int
    looks: bool  # may wait here for what another thread does to memory
    meets: Meeting | None = None  # of barriers and warp operations
    leaves: bool = False  # does nothing but return

    @property
    def meeting(self) -> Meeting:
        assert self.meets is not None, "Lanes meet at barriers and warp operations only."
        return self.meets


def successors(end: End) -> list[int]:
    """Segments that may follow one that ends like this."""
    match end:
        case int(target):
            return [target]
        case Branch(_, _, taken, other):
            return [target for target in (taken, other) if isinstance(target, int)]
        case Table(_, targets):
            return list(targets)
    return []


# ---- what a register or a piece of memory holds in the beginning ---------------------------------


class Constant(NamedTuple):
    """A register slot that holds a literal, shape (1, 1)."""

    slot: int
    value: Array


class SpecialSlot(NamedTuple):
    """A register slot that holds a special register, such as ``%tid.x``."""

    slot: int
    name: str


class SymbolSlot(NamedTuple):
    """A register slot that holds the address of a variable, plus `offset`."""

    slot: int
    name: str
    offset: int


class SharedSlot(NamedTuple):
    """A register slot that holds an address in the block's shared memory, `offset` bytes behind its start."""

    slot: int
    offset: int


class ParameterSlot(NamedTuple):
    """A register slot that holds the piece of the argument buffer at `offset`."""

    slot: int
    offset: int
    dtype: np.dtype


class Parameter(NamedTuple):
    """Where the argument buffer holds a parameter."""

    name: str
    offset: int
    nbytes: int


class SharedVariable(NamedTuple):
    """Where the block's shared memory holds a variable; dynamic shared memory has 0 bytes."""

    offset: int
    nbytes: int


@dataclass(slots=True)
class Program:
    """A kernel as data: all but the steps that run it.

    `instructions` is the inlined body in order; events and counts use its indices. `slots` are the register
    slots by the names of the registers; those listed in `constants` to `parameter_slots` have a content when
    a launch begins.
    """

    name: str
    display_name: str
    module: Module
    instructions: tuple[Instruction, ...]
    segments: tuple[Segment, ...]
    first: int  # the segment that lanes begin with
    dtypes: list[np.dtype]
    constants: list[Constant]
    specials: list[SpecialSlot]
    symbols: list[SymbolSlot]
    shared_slots: list[SharedSlot]
    parameter_slots: list[ParameterSlot]
    parameters: tuple[Parameter, ...]
    parameter_bytes: int
    shared_bytes: int
    local_bytes: int
    shared_variables: dict[str, SharedVariable]
    dynamic_shared: bool
    contended: bool  # has compare-and-swap loops: run fewer lanes at once
    timed: bool  # reads a clock
    flops: tuple[float, ...]  # floating-point operations of one lane, for each instruction
    reallocates: bool  # warpgroups pass registers to each other
    ordered: bool  # blocks may talk to each other: run chunks in order
    slots: dict[str, int]  # of the registers, by name
    frames_at: int  # byte of local memory behind which functions that are called have their frames
    local_variables: dict[str, int]  # offset in a thread's local memory
    prefixes: tuple[str, ...]  # what stands before the names in each instruction's function
    cluster: tuple[int, int, int] | None  # blocks of the cluster that it was compiled for

    @property
    def syncs_grid(self) -> bool:
        """Whether it waits for the whole grid, at a barrier that the driver keeps for it."""
        return any(special.name in ("%envreg1", "%envreg2") for special in self.specials)

    def is_load(self, index: int) -> bool:
        return self.instructions[index].parts[0] in ("ld", "ldu")
