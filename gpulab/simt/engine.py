"""Runs a program: blocks in chunks, lanes in groups, groups in a fair order.

A group is a segment and the lanes that are about to run it. Registers are arrays broadcastable to (B blocks,
T lanes). Lanes outside the running group may be left with garbage in a register, unless a waiting group still
needs it: those registers are `protected` and merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpulab.ptx import Module, Variable

from . import warps
from .errors import ArrayLabel, DivergentBarrier, Endless, Trap
from .events import Chunk, Observer
from .meetings import Meeting, value_of
from .memory import FRESH, LOCAL_WINDOW, SHARED_WINDOW, WINDOW, Allocation, Memory
from .program import Program, Segment
from .types import size_of

if TYPE_CHECKING:
    from .async_copies import Copies

Array = np.ndarray
Index = tuple[int, int, int]
Key = tuple[int, int]  # of a group: its warp's place in the schedule (0 in lockstep), its segment

WARP = 32
CHUNK_LANES = 16_384  # lanes that run at once: arrays that fit the cache, long enough to hide the interpreter
CONTENDED_LANES = 2_048  # … where compare-and-swap loops make most of them wait anyway
CHUNK_BYTES = 256 << 20  # registers, shared and local memory of one chunk
TURNS = 128  # in which a chunk may look in vain, before it counts as stuck
PATIENCE = 64  # looks in vain at memory that nobody changed, before all groups take turns
GRID_BARRIER_BYTES = 64
LIMIT = 3_000_000  # instructions of one chunk of blocks before a kernel counts as endless


@dataclass(frozen=True)
class Schedule:
    """Which lanes go first. Without a seed: all together, lowest program counter first. With one: warp after
    warp."""

    seed: int | None = None


LOCKSTEP = Schedule()


def warp_serial(seed: int) -> Schedule:
    """Every warp runs until it has to wait; the order of warps and of blocks is drawn from `seed`."""
    return Schedule(seed)


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
) -> None:
    """Run a kernel to its end; what it leaves behind is in `memory`.

    `grid` and `block` are (x, y, z); `arguments` is the packed parameter buffer; `shared_bytes` the dynamic
    shared memory; `resident_blocks` how many blocks the device could hold at once; `limit` the instructions
    after which a chunk of blocks counts as endless; `write` gets what the kernel prints; `undefined` is what
    a shuffle fetches where its result is undefined (None: what the register happens to hold). Raises
    `KernelFault`.
    """
    frame = _Frame(
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
class _Frame:
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

    def __post_init__(self) -> None:
        self.copies: list[Allocation] = []  # what lies in memory for the time of the launch
        program = self.program
        registers: list[Array] = [_ZERO[dtype.str] for dtype in program.dtypes]
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

        self.blocks = self.grid[0] * self.grid[1] * self.grid[2]
        self.order: Array | None = None
        if self.schedule.seed is not None:
            self.order = np.random.default_rng(self.schedule.seed).permutation(self.blocks)

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
                addresses[name] = copy.address
                self.copies.append(copy)
        return addresses

    @property
    def chunk_size(self) -> int:
        """How many blocks run together."""
        if self.order is not None:
            return 1
        per_lane = 8 * min(len(self.program.dtypes), 96) + self.program.local_bytes
        per_block = self.lanes_per_block * per_lane + self.shared_bytes
        lanes = CONTENDED_LANES if self.program.contended else CHUNK_LANES
        return max(1, min(lanes // self.lanes_per_block, CHUNK_BYTES // max(per_block, 1)))

    def chunk(self, first: int, size: int) -> Array:
        """Linear indices of up to `size` blocks, beginning with the one that is `first` in order."""
        places = np.arange(first, min(first + size, self.blocks))
        return places if self.order is None else self.order[places]


class _Zeros(dict):
    def __missing__(self, key: str) -> Array:
        value = self[key] = np.zeros((1, 1), np.dtype(key))
        return value


_ZERO = _Zeros()


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


def _run_chunks(frame: _Frame, resident_blocks: int | None) -> None:
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
            steps = run.execute()
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
            raise run.stuck(started < frame.blocks)


def _fresh(*shape: int) -> Array:
    """Windows of unwritten bytes, with room at the end of each for the widest access."""
    *windows, nbytes = shape
    return np.full((*windows, (nbytes + 15) // 16 * 16), FRESH, np.uint8)


class Run:
    """One chunk of blocks on its way through a program."""

    def __init__(self, frame: _Frame, blocks: Array):
        self.frame = frame
        self.program = frame.program
        self.memory = frame.memory
        self.arrays = frame.arrays
        self.chunk = Chunk(blocks, frame.lanes_per_block, frame.threads)
        self.shape = (blocks.size, frame.lanes_per_block)
        self.registers: list[Array] = list(frame.registers)
        self.shared_bytes = frame.shared_bytes
        self.shared = _fresh(blocks.size, self.shared_bytes)
        self.local = _fresh(*self.shape, self.program.local_bytes)
        self.block_rows = np.arange(blocks.size, dtype=np.int64)[:, None]
        self.lane_rows = np.arange(self.shape[0] * self.shape[1], dtype=np.int64).reshape(self.shape)
        lane = np.arange(frame.lanes_per_block)
        full = frame.lanes_per_block == frame.threads
        self.alive: Array | None = None if full else (lane < frame.threads)[None, :]
        self.lanes: Any = self.alive  # None, or a mask broadcastable to (B, T)
        self.protected = 0
        self.nearby: dict = {}
        self.copies: Copies | None = None
        self.changes = 0  # of memory, as far as others may see them
        # Since memory changed: looks at it in vain (without a step to somewhere new), states of groups that
        # were about to look, and groups that have run.
        self.idle = 0
        self.in_vain = False  # whether a group has looked at what only others can change, and it had not
        self.visited: set[int] = set()
        self.ran: set[Key] = set()
        self.following = False  # whether the group that got its turn goes on, until it looks in vain itself
        self.last: set[Key] = set()  # where the lanes of the last group went
        self.spent = 0
        self.clock = 0
        self.order = self._warp_order()
        self.ready: dict[Key, Array | None] = {}
        self.at_barrier: dict[int, Array] = {}
        self.at_warp: dict[int, Array] = {}
        self._hear(frame.observers)
        self._fill_specials(lane)

    # ---- set-up ----------------------------------------------------------------------------------

    def _warp_order(self) -> Array | None:
        if self.frame.schedule.seed is None:
            return None
        warps_per_block = self.shape[1] // WARP
        return np.random.default_rng(self.frame.schedule.seed).permutation(warps_per_block)

    def _hear(self, observers: Sequence[Observer]) -> None:
        """Only methods that an observer overrides are called."""

        def listeners(name: str) -> list:
            return [
                getattr(o, name) for o in observers if getattr(type(o), name) is not getattr(Observer, name)
            ]

        self.on_executed = listeners("executed")
        self.on_guarded = listeners("guarded")
        self.on_branch = listeners("branch")
        self.on_access = listeners("access")
        self.on_barrier = listeners("barrier")
        self.on_warp_sync = listeners("warp_sync")
        self.on_fence = listeners("fence")
        self.on_arrive = listeners("arrive")
        self.on_pass = listeners("passed")
        self.on_stray = listeners("stray")
        self.on_early = listeners("early")
        self.watches_lanes = bool(self.on_stray) or self.frame.undefined is not None

    def _fill_specials(self, lane: Array) -> None:
        if not self.program.specials:
            return
        grid, block = self.frame.grid, self.frame.block
        thread = np.unravel_index(np.minimum(lane, self.frame.threads - 1), block[::-1])[::-1]
        place = np.unravel_index(self.chunk.blocks, grid[::-1])[::-1]
        warp_lane = (lane % WARP).astype(np.uint32)
        bit = np.uint32(1) << warp_lane
        known: dict[str, Array] = {
            "%laneid": warp_lane[None, :],
            "%warpid": (lane // WARP)[None, :],
            "%nwarpid": np.array([[self.shape[1] // WARP]]),
            "%lanemask_eq": bit[None, :],
            "%lanemask_lt": (bit - np.uint32(1))[None, :],
            "%lanemask_le": (bit | (bit - np.uint32(1)))[None, :],
            "%lanemask_gt": ~(bit | (bit - np.uint32(1)))[None, :],
            "%lanemask_ge": ~(bit - np.uint32(1))[None, :],
            "%dynamic_smem_size": np.array([[self.frame.dynamic_shared]]),
            "%total_smem_size": np.array([[self.shared_bytes]]),
            "%smid": self.chunk.blocks[:, None],
            "%nsmid": np.array([[1]]),
            "%gridid": np.array([[1]]),
            "%envreg1": np.array([[self.frame.grid_barrier >> 32]]),
            "%envreg2": np.array([[self.frame.grid_barrier & 0xFFFF_FFFF]]),
        }
        for axis, name in enumerate("xyz"):
            known[f"%tid.{name}"] = thread[axis][None, :]
            known[f"%ctaid.{name}"] = place[axis][:, None]
            known[f"%ntid.{name}"] = np.array([[block[axis]]])
            known[f"%nctaid.{name}"] = np.array([[grid[axis]]])
        for slot, name in self.program.specials:
            value = known.get(name, _ZERO["<i8"])
            self.registers[slot] = (
                value.astype(np.uint32).view(np.int32)
                if value.dtype != np.int32 and (self.program.dtypes[slot].itemsize == 4)
                else value.astype(self.program.dtypes[slot])
            )

    # ---- what steps use --------------------------------------------------------------------------

    def put(self, slot: int | None, value: Array) -> None:
        """Write a register for the lanes of the group; None is the sink."""
        if slot is None:
            return
        if self.protected >> slot & 1:
            value = np.where(self.lanes, value, self.registers[slot])
        self.registers[slot] = value

    def mask(self) -> Array:
        """The group's lanes, shape (B, T)."""
        return self.full(self.lanes)

    def full(self, lanes: Array | None) -> Array:
        return np.broadcast_to(True if lanes is None else lanes, self.shape)

    def by_warp(self, lanes: Array) -> Array:
        """(b, t) → (b, W, 32)."""
        if lanes.shape[1] != self.shape[1]:
            lanes = np.broadcast_to(lanes, (lanes.shape[0], self.shape[1]))
        return lanes.reshape(lanes.shape[0], -1, WARP)

    @contextmanager
    def only(self, lanes: Array) -> Iterator[None]:
        """For a while the group is these lanes."""
        before = self.lanes
        self.lanes = lanes
        try:
            yield
        finally:
            self.lanes = before

    def write(self, text: str) -> None:
        if self.frame.write is not None:
            self.frame.write(text)
        else:
            print(text, end="")

    def c_string(self, address: int) -> str:
        """The text at a global address, up to its NUL."""
        allocation = self.memory.find(address)
        if allocation is None:
            return "?"
        octets = allocation.data[address - allocation.address :].tobytes()
        return octets.partition(b"\0")[0].decode("utf-8", "replace")

    def peek(self, row: int, lane: int, address: int, nbytes: int) -> bytes:
        """Bytes at a generic address as one thread sees them."""
        if SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW:
            window, start = self.shared[row], address - SHARED_WINDOW
        elif LOCAL_WINDOW <= address < LOCAL_WINDOW + WINDOW:
            window, start = self.local[row, lane], address - LOCAL_WINDOW
        else:
            allocation = self.memory.find(address)
            if allocation is None:
                return bytes(nbytes)
            window, start = allocation.data, address - allocation.address
        found = window[start : start + nbytes].tobytes()
        return found + bytes(nbytes - len(found))

    def thread(self, lane: int) -> Index:
        x, y, _ = self.frame.block
        return int(lane % x), int(lane // x % y), int(lane // (x * y))

    def block(self, row: int) -> Index:
        x, y, _ = self.frame.grid
        linear = int(self.chunk.blocks[row])
        return linear % x, linear // x % y, linear // (x * y)

    def blame(self, index: int, bad: Array | None = None) -> dict:
        """The fields of a fault: kernel, place, and the first lane of the group that is in `bad`."""
        lanes = self.mask() if bad is None else self.mask() & np.broadcast_to(bad, self.shape)
        row, lane = np.unravel_index(int(lanes.argmax()), self.shape)
        return {
            "kernel": self.program.display_name,
            "location": self.program.instructions[index].location,
            "block": self.block(int(row)),
            "thread": self.thread(int(lane)),
            "others": int(lanes.sum()) - 1,
        }

    # ---- the loop --------------------------------------------------------------------------------

    def changed(self) -> None:
        """Memory has changed: what others wait for may have come."""
        self.changes += 1
        self.in_vain = False
        self._forget()

    def looked(self, in_vain: bool) -> None:
        """A group has looked at what only others can change; in vain if it is sure to wait for them."""
        self.idle += PATIENCE if in_vain else 1
        self.in_vain |= in_vain

    def _forget(self) -> None:
        self.idle = 0
        self.visited.clear()
        self.ran.clear()
        self.following = False

    def execute(self) -> Iterator[int]:
        """Run the chunk to its end; whenever it can only wait for another chunk it yields its state."""
        self._add(0, self.alive)
        segments = self.program.segments
        turn: Key | None = None
        while self.ready:
            key = self._choose(turn)
            if key is None:
                state = self._state(turn)
                self._forget()
                yield state
                continue
            if key not in self.ran:
                self.ran.add(key)
                self.idle = 0
            lanes, turn = self.ready.pop(key), key
            self.last.clear()
            if self.ready or self.at_barrier or self.at_warp:
                self.protected = self._needed()
            else:
                lanes, self.protected = self.alive, 0
            self.lanes = lanes
            self._run_segment(segments[key[1]], key[1], lanes)
        self._finish()

    def _choose(self, turn: Key | None) -> Key | None:
        """The group that runs next: the one with the lowest program counter, unless it goes in circles.

        None if all do. A group that looks in vain and counts its looks goes in no circles that can be seen:
        when there were many looks, all groups take turns, each until it has looked in vain as often.
        """
        if self.idle < PATIENCE:
            if self.following and (goes_on := self.last & self.ready.keys()):
                return min(goes_on)
            return next((key for key in sorted(self.ready) if not self._circles(key)), None)
        if self.idle >= PATIENCE * len(self.ready):
            return None
        self.following = True
        return min((key for key in self.ready if turn is not None and key > turn), default=min(self.ready))

    def _circles(self, key: Key) -> bool:
        """Whether a group is about to look at memory, and was here before just as it is, and no memory has
        changed since."""
        segment = self.program.segments[key[1]]
        if not self.idle or not segment.looks:
            return False
        lanes = self.full(self.ready[key])
        contents = (np.broadcast_to(r, self.shape)[lanes].tobytes() for r in self._contents(segment.live))
        state = hash((key, lanes.tobytes(), self.clock * self.program.timed, *contents))
        if state in self.visited:
            return True
        self.visited.add(state)
        return False

    def _state(self, turn: Key | None) -> int:
        """A hash of all that decides how the chunk goes on, but for memory."""
        contents = (register.tobytes() for register in self._contents(self._needed()))
        groups = (
            tuple((key, self.full(lanes).tobytes()) for key, lanes in sorted(places.items()))
            for places in (self.ready, self.at_barrier, self.at_warp)
        )
        return hash((turn, self.clock * self.program.timed, *contents, *groups))

    def _contents(self, needed: int) -> list[Array]:
        return [register for slot, register in enumerate(self.registers) if needed >> slot & 1]

    def _needed(self) -> int:
        """Registers that lanes outside the running group still need."""
        segments = self.program.segments
        needed = 0
        for _, number in self.ready:
            needed |= segments[number].live
        for number in self.at_barrier:
            needed |= segments[number].live
        for number in self.at_warp:
            needed |= segments[number].live
        return needed

    def _run_segment(self, segment: Segment, number: int, lanes: Array | None) -> None:
        if segment.kind == "barrier":
            self._arrive(self.at_barrier, number, lanes)
            self._release_barriers()
            return
        if segment.kind == "warp":
            self._arrive(self.at_warp, number, lanes)
            self._release_warps(segment.meet.key)
            return
        for hear in self.on_executed:
            hear(segment.first, segment.stop, lanes, self.chunk)
        self._spend(segment)
        for step in segment.steps:
            step(self)
        self._leave(segment, lanes)

    def _spend(self, segment: Segment) -> None:
        self.spent += segment.stop - segment.first
        self.clock += segment.stop - segment.first
        if self.spent > self.frame.limit:
            raise Endless(
                **self.blame(max(segment.stop - 1, segment.first)),
                what=f"was still running after {self.frame.limit:,} instructions.",
                advice="Does the condition of its loop become false for every thread?",
            )

    def _leave(self, segment: Segment, lanes: Array | None) -> None:
        """Send the lanes on to where the segment's end says."""
        end = segment.end
        kind = end[0]
        if kind == "next":
            self._add(end[1], lanes)
        elif kind == "branch":
            self._branch(segment, lanes)
        elif kind == "exit":
            self._exit(lanes)
        elif kind == "trap":
            raise Trap(**self.blame(segment.stop - 1), what="reached a trap: the kernel stopped itself.")
        elif kind == "endless":
            raise Endless(
                **self.blame(segment.stop - 1),
                what="waits in a loop whose condition is never looked at again.",
                advice="The compiler may read a plain value once: wait with an atomic or a volatile read.",
            )
        else:
            chosen = self.registers[end[1]]
            for hear in self.on_branch:
                hear(segment.stop - 1, lanes, chosen, self.chunk)
            for value in np.unique(
                chosen if lanes is None else np.broadcast_to(chosen, self.shape)[self.full(lanes)]
            ):
                part = chosen == value
                self._add(end[2][int(value)], part if lanes is None else part & lanes)

    def _branch(self, segment: Segment, lanes: Array | None) -> None:
        _, guard, negated, target, other = segment.end
        taken = self.registers[guard]
        if negated:
            taken = ~taken
        for hear in self.on_branch:
            hear(segment.stop - 1, lanes, taken, self.chunk)
        if taken.size == 1:
            self._go(target if taken.flat[0] else other, lanes, segment)
            return
        went = taken if lanes is None else taken & lanes
        if not went.any():
            self._go(other, lanes, segment)
            return
        stayed = ~taken if lanes is None else lanes & ~taken
        if not stayed.any():
            self._go(target, lanes, segment)
            return
        # Those who go on first: lanes that leave may release others that wait for the rest.
        for place, part in sorted(((target, went), (other, stayed)), key=lambda p: not isinstance(p[0], int)):
            self._go(place, part, segment)

    def _go(self, target: int | str | None, lanes: Array | None, segment: Segment) -> None:
        if isinstance(target, int):
            self._add(target, lanes)
        elif target == "trap":
            self.lanes = lanes
            raise Trap(**self.blame(segment.stop - 1), what="reached a trap: the kernel stopped itself.")
        else:
            self._exit(lanes)

    def _add(self, number: int, lanes: Array | None) -> None:
        """Lanes are about to run segment `number`; they join those that are there already."""
        if self.order is None:
            self.last.add((0, number))
            self._join(self.ready, (0, number), lanes)
            return
        full = self.full(lanes)
        for rank, warp in enumerate(self.order):
            part = np.zeros((1, self.shape[1]), bool)
            part[:, warp * WARP : (warp + 1) * WARP] = True
            part = full & part
            if part.any():
                self.last.add((rank, number))
                self._join(self.ready, (rank, number), part)

    @staticmethod
    def _join(groups: dict, key: object, lanes: Array | None) -> None:
        if key in groups:
            there = groups[key]
            groups[key] = None if there is None or lanes is None else there | lanes
        else:
            groups[key] = lanes

    def _exit(self, lanes: Array | None) -> None:
        self.changes += 1
        self.alive = self.full(self.alive) & ~self.full(lanes)
        self._release_barriers()
        for key in {self.program.segments[n].meet.key for n in self.at_warp}:
            self._release_warps(key)

    # ---- meetings --------------------------------------------------------------------------------

    def _alone(self) -> bool:
        return not self.ready and len(self.at_barrier) + len(self.at_warp) == 1

    def _arrive(self, waiting: dict[int, Array], number: int, lanes: Array | None) -> None:
        self._join(waiting, number, lanes)

    def _release_barriers(self) -> None:
        if not self.at_barrier:
            return
        if self._alone():
            ((number, lanes),) = self.at_barrier.items()
            segment = self.program.segments[number]
            if segment.meet.count is None:
                self.at_barrier.clear()
                self._pass_barrier(segment, lanes)
                return
        waiting: dict[int, dict[int, Array]] = {}  # by the barrier's number, the lanes at each segment
        for number, lanes in self.at_barrier.items():
            there = self.full(lanes)
            name = value_of(self, self.program.segments[number].meet.mask)
            if name.size == 1:  # as nearly always
                waiting.setdefault(int(name.flat[0]), {})[number] = there
                continue
            for each in np.unique(np.broadcast_to(name, self.shape)[there]):
                waiting.setdefault(int(each), {})[number] = there & (name == each)
        for parts in waiting.values():
            self._release_barrier(parts)

    def _release_barrier(self, parts: dict[int, Array]) -> None:
        arrived = np.logical_or.reduce(list(parts.values()))
        meeting: Meeting = self.program.segments[next(iter(parts))].meet
        if meeting.count is None:
            complete = (arrived | ~self.full(self.alive)).all(axis=1) & arrived.any(axis=1)
        else:
            count = np.broadcast_to(value_of(self, meeting.count), self.shape)[next(iter(parts.values()))]
            complete = arrived.sum(axis=1) == int(count[0])
        if not complete.any():
            return
        parts = {n: here for n, part in parts.items() if (here := part & complete[:, None]).any()}
        if len(parts) > 1 and meeting.count is None:
            self._refuse_mixed(parts)
        for number, part in parts.items():
            rest = self.full(self.at_barrier[number]) & ~part
            if rest.any():
                self.at_barrier[number] = rest
            else:
                del self.at_barrier[number]
            self.lanes = part
            self.protected = self._needed()
            self._pass_barrier(self.program.segments[number], part)

    def _refuse_mixed(self, parts: dict[int, Array]) -> None:
        """Threads of one block at two different barriers: the hardware would let them pass by accident."""
        there = [(n, part.any(axis=1)) for n, part in parts.items()]
        if not (there[0][1] & there[1][1]).any():
            return
        first, second = there[0][0], there[1][0]
        segments = self.program.segments
        other = self.program.instructions[segments[second].first].location
        self.lanes = parts[first]
        raise DivergentBarrier(
            **self.blame(segments[first].first),
            elsewhere=other,
            what="waits at this barrier, while other threads of its block wait at another one"
            + (f" (line {other.line})." if other else "."),
            advice="All threads of a block must reach the same barrier: move it out of the branch.",
        )

    def _pass_barrier(self, segment: Segment, lanes: Array | None) -> None:
        self.lanes = lanes
        for hear in self.on_executed:
            hear(segment.first, segment.stop, lanes, self.chunk)
        for hear in self.on_barrier:
            hear(segment.first, lanes, self.chunk)
        self._spend(segment)
        meeting: Meeting = segment.meet
        if meeting.compute is not None:
            values = [np.broadcast_to(v, self.shape) for v in meeting.given(self)]
            meeting.hand_out(self, meeting.compute(*values, self.full(lanes)))
        self._leave(segment, lanes)

    def _release_warps(self, key: str) -> None:
        """Let those lanes go on whose partners have all come to an operation of the same kind."""

        numbers = [n for n in self.at_warp if self.program.segments[n].meet.key == key]
        if not numbers:
            return
        if self._alone():
            number = numbers[0]
            lanes = self.at_warp.pop(number)
            self._pass_warp({number: lanes}, lanes)
            return
        arrived = np.zeros(self.shape, bool)
        wanted = np.zeros(self.shape, np.uint32)
        for number in numbers:
            lanes = self.full(self.at_warp[number])
            arrived = arrived | lanes
            wanted = np.where(lanes, self._members(number), wanted)
        absent = warps.pack(self.by_warp(self.full(self.alive) & ~arrived))  # (B, W, 1)
        complete = ((self.by_warp(wanted) & absent) == 0).reshape(self.shape) & arrived
        if not complete.any():
            return
        parts: dict[int, Array] = {}
        for number in numbers:
            lanes = self.full(self.at_warp[number])
            parts[number] = lanes & complete
            rest = lanes & ~complete
            if rest.any():
                self.at_warp[number] = rest
            else:
                del self.at_warp[number]
        self._pass_warp({n: part for n, part in parts.items() if part.any()}, complete)

    def _members(self, number: int) -> Array:
        return value_of(self, self.program.segments[number].meet.mask)

    def _pass_warp(self, parts: dict[int, Array | None], lanes: Array | None) -> None:
        """Run one warp operation for lanes whose partners are all here."""
        segments = self.program.segments
        others = self._needed()
        for number in parts:
            others |= segments[number].live if len(parts) > 1 else 0
        self.protected = others
        meeting: Meeting = segments[next(iter(parts))].meet
        if meeting.compute is not None:
            self._exchange(parts, lanes, meeting)
        for number, part in parts.items():
            segment = segments[number]
            self.lanes = part
            for hear in self.on_executed:
                hear(segment.first, segment.stop, part, self.chunk)
            for hear in self.on_warp_sync:
                hear(segment.first, part, self.chunk)
            self._spend(segment)
            self._leave(segment, part)

    def _exchange(self, parts: dict[int, Array | None], lanes: Array | None, meeting: Meeting) -> None:
        if len(parts) == 1:
            number = next(iter(parts))
            given = [self.by_warp(v) for v in meeting.given(self)]
            masks = self.by_warp(self._members(number))
        else:
            given, masks = self._gathered(parts)
        remaining = self.by_warp(self.full(lanes))
        results: list[Array] | None = None
        strays = _Strays(self.shape) if self.watches_lanes else None
        first = True
        while first or remaining.any():  # once, unless lanes of one warp came with different masks
            leader = remaining.argmax(axis=-1)[..., None]
            wide = np.broadcast_to(masks, remaining.shape)
            mask = np.take_along_axis(wide, leader, axis=-1)
            members = warps.unpack(mask[..., 0]) & self.by_warp(self.full(lanes))
            new = meeting.compute(*given, members)  # type: ignore[misc]
            mine = remaining & (members | (leader == warps.LANE))
            if strays is not None:
                named = warps.unpack(mask[..., 0])
                new = strays.look(meeting, given, new, mine, named, members, self.frame.undefined)
            if first and not (remaining & ~mine).any():
                results = new
                break
            results = (
                new if results is None else [np.where(mine, n, r) for n, r in zip(new, results, strict=True)]
            )
            remaining = remaining & ~mine
            first = False
        assert results is not None
        flat = [np.broadcast_to(r, (*r.shape[:-1], WARP)).reshape(r.shape[0], -1) for r in results]
        flat = [np.ascontiguousarray(np.broadcast_to(f, (f.shape[0], self.shape[1]))) for f in flat]
        for number, part in parts.items():
            self.lanes = part
            self.program.segments[number].meet.hand_out(self, flat)
            for why, stray in strays.lanes.items() if strays is not None else ():
                if (here := stray.reshape(self.shape) & self.full(part)).any():
                    for hear in self.on_stray:
                        hear(self.program.segments[number].first, here, why, self.chunk)

    def _gathered(self, parts: dict[int, Array | None]) -> tuple[list[Array], Array]:
        """Inputs and masks of lanes that came through different instructions."""
        merged: list[Array] = []
        masks = np.zeros(self.shape, np.uint32)
        for number, part in parts.items():
            here = self.full(part)
            meeting: Meeting = self.program.segments[number].meet
            given = meeting.given(self)
            merged = [np.where(here, v, m) for v, m in zip(given, merged, strict=True)] if merged else given
            masks = np.where(here, self._members(number), masks)
        return [self.by_warp(m) for m in merged], self.by_warp(masks)

    # ---- the end ---------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Nothing can run any more: either all lanes have exited, or some wait for what cannot come."""
        waiting = dict(sorted({**self.at_barrier, **self.at_warp}.items()))
        if not waiting:
            return
        number, lanes = next(iter(waiting.items()))
        segment = self.program.segments[number]
        self.lanes = lanes
        where = "barrier" if number in self.at_barrier else "warp operation"
        others = [
            self.program.instructions[self.program.segments[n].first].location for n in waiting if n != number
        ]
        lines = sorted({str(o.line) for o in others if o is not None})
        elsewhere = f" Others wait at line {', '.join(lines)}." if lines else ""
        raise DivergentBarrier(
            **self.blame(segment.first),
            what=f"waits at this {where} for threads that never come to it.{elsewhere}",
            elsewhere=next((o for o in others if o is not None), None),
            advice="Every thread that the operation waits for must reach it: move it out of the branch.",
        )

    def stuck(self, more: bool) -> Endless:
        """The fault of a chunk that waits for something that cannot come."""
        (_, number), lanes = next(iter(self.ready.items()))
        self.lanes = lanes
        if self.in_vain:
            return Endless(
                **self.blame(self.program.segments[number].first),
                what="waits at an mbarrier for arrivals that never come.",
                advice="Do as many threads arrive, in each phase, as it was initialised for?",
            )
        what = (
            "waits for a block that cannot be resident: the device is full of blocks that wait."
            if more
            else "waits for a change of memory that no other thread makes."
        )
        return Endless(
            **self.blame(self.program.segments[number].first),
            what=what,
            advice="Blocks may only wait for blocks that are sure to be running.",
        )


class _Strays:
    """Lanes for which a warp operation has no defined result. `lanes` are arrays (B, W, 32) by reason."""

    def __init__(self, shape: tuple[int, int]):
        empty = np.zeros((shape[0], shape[1] // WARP, WARP), bool)
        self.lanes = {"unnamed": empty, "outside": empty, "inactive": empty}

    def look(
        self,
        meeting: Meeting,
        given: list[Array],
        results: list[Array],
        mine: Array,
        named: Array,
        members: Array,
        fill: int | None,
    ) -> list[Array]:
        """Note the strays among the lanes `mine`, and put `fill` for what a shuffle gives them."""
        self.lanes["unnamed"] = self.lanes["unnamed"] | mine & ~named
        if meeting.sources is None:
            return results
        shape = mine.shape
        source = np.broadcast_to(meeting.sources(*given), shape).astype(np.int64)
        outside = mine & ~np.take_along_axis(np.broadcast_to(named, shape), source, axis=-1)
        inactive = mine & ~outside & ~np.take_along_axis(np.broadcast_to(members, shape), source, axis=-1)
        self.lanes["outside"] = self.lanes["outside"] | outside
        self.lanes["inactive"] = self.lanes["inactive"] | inactive
        if fill is None:
            return results
        value = np.where(outside | inactive, results[0].dtype.type(fill), results[0])
        return [value, *results[1:]]
