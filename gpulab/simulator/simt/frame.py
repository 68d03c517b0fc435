"""What all chunks of a launch share: the launch itself and which lanes go first."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .errors import ArrayLabel, Index
from .events import Observer
from .memory import Allocation, Memory
from .program import Program
from .supply import Supply
from .warps import WARP

Array = np.ndarray


@dataclass(frozen=True)
class Schedule:
    """Which lanes go first.

    `seed` is of the order of blocks and of who is in which team; None keeps blocks in order. A team runs
    until it has to wait, lowest program counter first, and then the next one does: `teams` says into how many
    the warps of all blocks that run at once are tossed, None makes every warp a team. `backwards` lets the
    last block and, in an atomic operation, the last lane come first.
    """

    seed: int | None = None
    teams: int | None = 1
    backwards: bool = False


# The defaults of cudaLimitStackSize, of one thread, and of cudaLimitMallocHeapSize, of all kernels.
STACK_BYTES = 1024
HEAP_BYTES = 8 << 20

LOCKSTEP = Schedule()
BACKWARDS = Schedule(backwards=True)


def warp_serial(seed: int) -> Schedule:
    """Every warp runs until it has to wait; the order of warps and of blocks is drawn from `seed`.

    >>> warp_serial(seed=1).seed
    1
    """
    return Schedule(seed, teams=None)


def two_teams(seed: int) -> Schedule:
    """One half of all warps runs until it has to wait, then the other does; `seed` draws the halves.

    >>> two_teams(seed=1).teams
    2
    """
    return Schedule(seed, teams=2)


@dataclass(frozen=True)
class Frame:
    """What all chunks of a launch share; see `engine.launch` for its arguments.

    `registers` are the contents with which every chunk begins, shape (1, 1) each; `grid_barrier` is the
    address of the words at which the blocks of a cooperative launch meet, 0 where they do not.
    """

    program: Program
    grid: Index
    block: Index
    arguments: bytes
    memory: Memory
    registers: tuple[Array, ...]
    grid_barrier: int
    dynamic_shared: int
    observers: tuple[Observer, ...]
    schedule: Schedule
    limit: int | None
    arrays: tuple[ArrayLabel, ...]
    write: Callable[[str], None] | None
    undefined: int | None
    guard: str  # as messages call it
    allotted: int | None  # registers of each thread when the launch begins; None: nobody counts them
    garbage: np.random.Generator | None  # draws unwritten bytes of registers and memory
    supply: Supply  # the blocks that have not begun
    stack_bytes: int  # of each thread
    heap_bytes: int  # of all kernels together
    cluster: Index = (1, 1, 1)  # blocks of a cluster
    has_clusters: bool = False  # whether the launch or the kernel asked for them
    nearby: dict[int, Allocation] = field(default_factory=dict)  # what each instruction touched last

    @cached_property
    def listeners(self) -> dict[str, list[Callable[..., None]]]:
        """What to call for each event: the methods that observers override."""
        return {
            name: [getattr(o, name) for o in self.observers if getattr(type(o), name) is not method]
            for name, method in vars(Observer).items()
            if not name.startswith("_") and callable(method)
        }

    @property
    def cluster_size(self) -> int:
        """Blocks of a cluster."""
        return math.prod(self.cluster)

    @property
    def threads(self) -> int:
        """Of a block."""
        return math.prod(self.block)

    @property
    def lanes_per_block(self) -> int:
        """T: threads of a block rounded up to whole warps."""
        return (self.threads + WARP - 1) // WARP * WARP

    @property
    def shared_bytes(self) -> int:
        return self.program.shared_bytes + self.dynamic_shared
