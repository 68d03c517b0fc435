"""Launches a program: variables and parameters in memory, blocks in chunks, chunks in a fair order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpulab.simulator.ptx import Module, Variable

from .errors import ArrayLabel
from .events import Observer
from .memory import Allocation, Memory
from .program import Program
from .run import WARP, ZERO, Run
from .scheduling import execute, stuck
from .types import size_of

if TYPE_CHECKING:
    pass

Array = np.ndarray
Index = tuple[int, int, int]

CHUNK_LANES = 16_384  # lanes that run at once: arrays that fit the cache, long enough to hide the interpreter
CONTENDED_LANES = 2_048  # … where compare-and-swap loops make most of them wait anyway
CHUNK_BYTES = 256 << 20  # registers, shared and local memory of one chunk
TURNS = 128  # in which a chunk may look in vain, before it counts as stuck
GRID_BARRIER_BYTES = 64
LIMIT = 3_000_000  # instructions of one chunk of blocks before a kernel counts as endless


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


LOCKSTEP = Schedule()
BACKWARDS = Schedule(backwards=True)


def warp_serial(seed: int) -> Schedule:
    """Every warp runs until it has to wait; the order of warps and of blocks is drawn from `seed`."""
    return Schedule(seed, teams=None)


def two_teams(seed: int) -> Schedule:
    """One half of all warps runs until it has to wait, then the other does; `seed` draws the halves."""
    return Schedule(seed, teams=2)


def launch(
    program: Program,
    grid: Index,
    block: Index,
    arguments: bytes,
    memory: Memory,
    *,
    shared_bytes: int = 0,
    observers: Sequence[Observer] = (),
    schedule: Schedule = LOCKSTEP,
    resident_blocks: int | None = None,
    limit: int = LIMIT,
    arrays: tuple[ArrayLabel, ...] = (),
    write: Callable[[str], None] | None = None,
    undefined: int | None = None,
    blocks: Array | None = None,
    guard: str = "guard",
    garbage: np.random.Generator | None = None,
) -> None:
    """Run a kernel to its end; what it leaves behind is in `memory`.

    `grid` and `block` are (x, y, z); `arguments` is the packed parameter buffer; `shared_bytes` the dynamic
    shared memory; `resident_blocks` how many blocks the device could hold at once; `limit` the instructions
    after which a chunk of blocks counts as endless; `write` gets what the kernel prints; `undefined` is what
    a shuffle fetches where its result is undefined (None: what the register happens to hold); `blocks` are
    the linear indices of those blocks that run, in order (None: all); `guard` is what keeps an index inside
    an array, in the words of the kernel's language; `garbage` draws what stands in shared and local memory
    before anything is written there (None: `memory.FRESH`, everywhere). Raises `KernelFault`.
    """
    frame = Frame(
        program,
        grid,
        block,
        arguments,
        memory,
        shared_bytes,
        tuple(observers),
        schedule,
        limit,
        arrays,
        write,
        undefined,
        blocks,
        guard,
        garbage,
    )
    for observer in observers:
        observer.start(program, grid, block)
    try:
        with np.errstate(all="ignore"):
            _run_chunks(frame, resident_blocks)
    finally:
        for copy in frame.copies:
            memory.free(copy)
    for observer in observers:
        observer.end()


@dataclass
class Frame:
    """What all chunks of a launch share."""

    program: Program
    grid: Index
    block: Index
    arguments: bytes
    memory: Memory
    dynamic_shared: int
    observers: tuple[Observer, ...]
    schedule: Schedule
    limit: int
    arrays: tuple[ArrayLabel, ...]
    write: Callable[[str], None] | None
    undefined: int | None = None
    order: Array | None = None  # of blocks; those that are not in it do not run
    guard: str = "guard"  # as messages call it
    garbage: np.random.Generator | None = None

    def __post_init__(self) -> None:
        self.copies: list[Allocation] = []  # what lies in memory for the time of the launch
        program = self.program
        registers: list[Array] = [ZERO[dtype.str] for dtype in program.dtypes]
        for slot, value in program.constants:
            registers[slot] = value
        for slot, offset, dtype in program.parameter_slots:
            piece = self.arguments[offset : offset + dtype.itemsize]
            registers[slot] = np.frombuffer(piece, dtype).reshape(1, 1)
        if program.symbols:
            places = self._place_variables()
            for slot, name, offset in program.symbols:
                registers[slot] = np.full((1, 1), places[name] + offset, np.int64)
        self.grid_barrier = self._place_grid_barrier() if program.syncs_grid else 0
        self.registers = registers
        self.shared_bytes = program.shared_bytes + self.dynamic_shared
        self.threads = self.block[0] * self.block[1] * self.block[2]
        self.lanes_per_block = (self.threads + WARP - 1) // WARP * WARP

        whole = self.grid[0] * self.grid[1] * self.grid[2]
        self.blocks = whole if self.order is None else len(self.order)
        if self.schedule.seed is not None:
            draw = np.random.default_rng(self.schedule.seed)
            self.order = draw.permutation(whole if self.order is None else self.order)

    def _place_grid_barrier(self) -> int:
        """Where the blocks of a cooperative launch count who has come: zeros, as the driver makes it."""
        barrier = self.memory.allocate(GRID_BARRIER_BYTES, "the barrier of the grid", fill=None)
        self.copies.append(barrier)
        return barrier.address

    def _place_variables(self) -> dict[str, int]:
        """Addresses of everything that the program names: variables of its module, parameters in memory."""
        program = self.program
        addresses = variables_of(program.module, self.memory)
        named = {name for _, name, _ in program.symbols}
        for name, offset, size in program.parameters:
            if name in named:  # a parameter whose address is taken
                copy = self.memory.allocate(size, name)
                copy.data[:] = np.frombuffer(self.arguments[offset : offset + size], np.uint8)
                copy.writable = False
                addresses[name] = copy.address
                self.copies.append(copy)
        return addresses

    @property
    def chunk_size(self) -> int:
        """How many blocks run together."""
        if self.schedule.teams is None:
            return 1
        per_lane = 8 * min(len(self.program.dtypes), 96) + self.program.local_bytes
        per_block = self.lanes_per_block * per_lane + self.shared_bytes
        lanes = CONTENDED_LANES if self.program.contended else CHUNK_LANES
        return max(1, min(lanes // self.lanes_per_block, CHUNK_BYTES // max(per_block, 1)))

    def chunk(self, first: int, size: int) -> Array:
        """Linear indices of up to `size` blocks, beginning with the one that is `first` in order."""
        places = np.arange(first, min(first + size, self.blocks))
        if self.schedule.backwards:  # those that run together stay in order: lanes come backwards themselves
            places = self.blocks - 1 - places[::-1]
        return places if self.order is None else self.order[places]


def variables_of(module: Module, memory: Memory) -> dict[str, int]:
    """Addresses of a module's global and constant variables, which `memory` makes once and keeps."""
    places = memory.modules.get(id(module))
    if places is None:
        wanted = [v for v in module.variables.values() if v.space in ("global", "const")]
        allocations = {v.name: _new_variable(memory, v) for v in wanted}
        for variable in wanted:
            for offset, symbol in variable.pointers:
                value = allocations[symbol.name].address + symbol.offset
                allocations[variable.name].data[offset : offset + 8].view(np.int64)[0] = value
        # The module is kept beside its addresses, so that its id is not given to another one.
        places = memory.modules[id(module)] = (module, {name: a.address for name, a in allocations.items()})
    return dict(places[1])


def _new_variable(memory: Memory, variable: Variable) -> Allocation:
    nbytes = size_of(variable.type) * variable.count
    allocation = memory.allocate(nbytes, variable.name, fill=None)
    if variable.initial is not None:
        initial = np.frombuffer(variable.initial, np.uint8)
        allocation.data[: len(initial)] = initial
    allocation.writable = variable.space != "const"
    return allocation


def _run_chunks(frame: Frame, resident_blocks: int | None) -> None:
    """Run all chunks; one that waits for another is put aside while the next ones start.

    A launch is stuck when all chunks that may run have, one after the other, come back to a state in which
    they were before, and no memory has changed since: they would go in circles forever. Those that watch the
    clock are never as before; they are stuck when they have looked in vain for `TURNS` turns each.
    """
    size, started = frame.chunk_size, 0
    parked: list[tuple[Run, Iterator[int]]] = []
    seen: set[tuple[int, int]] = set()  # states of parked chunks since memory changed
    again = 0  # how many chunks in a row have come back to one of them
    waited = 0  # how many in a row have looked in vain
    while True:
        room = size
        if resident_blocks is not None:
            room = min(size, resident_blocks - sum(run.chunk.blocks.size for run, _ in parked))
        if room > 0 and started < frame.blocks:
            run = Run(frame, frame.chunk(started, room))
            started += run.chunk.blocks.size
            steps = execute(run)
        elif parked:
            run, steps = parked.pop(0)
        else:
            return
        before = run.changes
        state = next(steps, None)
        if state is not None:
            parked.append((run, steps))
        if state is None or run.changes != before:
            seen.clear()
            again = waited = 0
            continue
        known = (id(run), state)
        again = again + 1 if known in seen else 0
        seen.add(known)
        waited = waited + 1 if run.in_vain else 0
        if again > len(parked) or waited > TURNS * len(parked):
            raise stuck(run, started < frame.blocks)
