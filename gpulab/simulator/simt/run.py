"""One chunk of blocks on its way through a program: registers, windows of memory, lanes and where they are.

Registers are arrays broadcastable to (B blocks, T lanes). Lanes outside the running group may be left with
garbage in a register, unless a waiting group still needs it: those registers are `protected` and merged.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple, TypedDict

import numpy as np

from gpulab.simulator.ptx import Location

from .copies import Copies
from .errors import Index, StillRunning, index_of
from .events import Chunk
from .flights import Flights
from .frame import Frame
from .memory import FRESH, LOCAL_WINDOW, SHARED_WINDOW, WINDOW
from .open_calls import OpenCalls
from .products import Products
from .program import Segment
from .register_pools import RegisterPool
from .tensor_memory import TensorMemory
from .tensor_work import TensorWork
from .types import ZERO, widened
from .warps import WARP

Array = np.ndarray

AXES = ("x", "y", "z")
RANK_BIT = 24  # of a shared address: the lowest bit of the block's rank in its cluster
LIMIT = 3_000_000  # instructions of a chunk before its time counts
SECONDS = 300.0  # of simulation after that, before a kernel counts as endless
WATCH_AFTER = 20_000  # instructions of a chunk before it is watched for circles
ENDS = "Does the condition of its loop become false for every thread?"
MORE = (
    "If it does end, allow as many instructions as it needs: GPULAB_LIMIT=N in the environment, "
    "gpulab run --limit N, or pytest --gpulab-limit N."
)
PATIENCE = 64  # fruitless looks at memory that nothing has changed, after which all groups take turns


class Place(NamedTuple):
    """Where a group of lanes is: its team's turn in the schedule, and the segment that it is about to run.

    Places sort in the order in which their groups run.
    """

    team: int
    segment: int


place = cache(Place)  # groups come to the same places again and again


@dataclass
class ClusterMeeting:
    """The barriers of the chunk's clusters: how often each lane has arrived and waited, (B, T), and how many
    phases of each cluster are over, (clusters,)."""

    arrived: Array
    waited: Array
    over: Array


@dataclass
class Wait:
    """`lanes` looked at the mbarriers at `address` of the blocks in `row`, and the phase of `parity` was not
    over. All have the shape (B, T)."""

    lanes: Array
    address: Array
    row: Array
    parity: Array

    def with_others(self, before: Wait, here: Array) -> Wait:
        """This, and those who looked `before` but are not `here`, among the lanes that look now."""
        return Wait(
            self.lanes | before.lanes & ~here,
            np.where(here, self.address, before.address),
            np.where(here, self.row, before.row),
            np.where(here, self.parity, before.parity),
        )


@dataclass
class Watch:
    """A round of a loop that has begun: where all lanes were, which lanes were where, and the registers that
    they needed, by slot. `ran` are the segments that have run since, `steps` how many, `rounds` how often the
    place was reached again."""

    place: Place
    lanes: list[tuple[object, bytes]]
    registers: dict[int, Array]
    ran: set[int] = field(default_factory=set)
    steps: int = 0
    rounds: int = 0


class Blame(TypedDict):
    """The fields of a fault that name the thread and the place."""

    kernel: str
    location: Location | None
    block: Index
    thread: Index
    others: int
    linear: tuple[int, int]


@cache
def thread_coordinates(lanes: int, block: Index) -> tuple[Array, ...]:
    """z, y and x of the thread of each lane. Lanes beyond the block have those of its last thread."""
    return np.unravel_index(np.minimum(np.arange(lanes), math.prod(block) - 1), block[::-1])


def fresh(garbage: np.random.Generator | None, *shape: int) -> Array:
    """Windows of unwritten bytes, with room at the end of each for the widest access."""
    *windows, nbytes = shape
    room = (*windows, (nbytes + 15) // 16 * 16)
    if garbage is not None:
        return garbage.integers(0, 256, room, np.uint8)
    return np.full(room, FRESH, np.uint8)


class Run:
    """One chunk of blocks on its way through a program."""

    def __init__(self, frame: Frame, blocks: Array):
        self.frame = frame
        self.program = frame.program
        self.memory = frame.memory
        self.arrays = frame.arrays
        self.chunk = Chunk(blocks, frame.lanes_per_block, frame.threads, frame.cluster_size)
        self.shape = (blocks.size, frame.lanes_per_block)
        self._everybody, self.nobody = (np.broadcast_to(there, self.shape) for there in (True, False))
        self.registers: list[Array] = list(frame.registers)
        self.shared_bytes = frame.shared_bytes
        self.shared = fresh(frame.garbage, blocks.size, self.shared_bytes)
        self.local_bytes = self.program.local_bytes
        self.local = fresh(frame.garbage, *self.shape, self.local_bytes)
        self.stack: OpenCalls | None = None
        self.block_rows = np.arange(blocks.size, dtype=np.int64)[:, None]
        self.cluster_size = frame.cluster_size
        self.ranks = self.block_rows % self.cluster_size
        lane = np.arange(frame.lanes_per_block)
        full = frame.lanes_per_block == frame.threads
        self.alive: Array | None = None if full else (lane < frame.threads)[None, :]
        self.lanes = self.alive  # None, or a mask broadcastable to (B, T)
        self.protected = 0
        self.nearby = frame.nearby
        # By load from shared memory: its last addresses, lanes and elements, if they are alike in all blocks.
        self.placed: dict[int, tuple[Array, Array | None, Array]] = {}
        self.stretches: dict[object, Any] = {}  # what stretches know about their loads
        self.copies: Copies | None = None
        self.flights: Flights | None = None
        self.products: Products | None = None
        self.tensor_memory: TensorMemory | None = None
        self.tensor_work: TensorWork | None = None
        self.changes = 0  # of memory, as far as others may see them
        # Since memory changed: looks at it in vain (without a step to somewhere new), states of groups that
        # were about to look, and groups that have run.
        self.idle = 0
        self.in_vain = False  # whether a group has looked at what only others can change, and it had not
        self.visited: set[int] = set()
        self.ran: set[Place] = set()
        # Whether the group that got its turn goes on, until a look of its own is fruitless.
        self.following = False
        self.last: set[Place] = set()  # where the lanes of the last group went
        self.pool: RegisterPool | None = None
        self.freed = False  # whether registers have been given back, for which others may have waited
        self.exited = False  # whether lanes have, for whom others may have waited
        self.spent = 0
        self.clock = 0
        self.timed_after = LIMIT  # instructions after which the clock is asked next
        self.began: float | None = None  # seconds of this thread when it was asked for the first time
        self.watch: Watch | None = None  # a round that may turn out to be one of many alike
        self.watch_after = WATCH_AFTER  # instructions
        self.turns = self._turns()
        self.teams = self._teams()
        self.ready: dict[Place, Array | None] = {}
        self.at_barrier: dict[int, Array | None] = {}
        self.at_warp: dict[int, Array | None] = {}
        self.at_cluster: dict[int, Array | None] = {}
        self.meeting: ClusterMeeting | None = None
        self.waits: dict[int, Wait] = {}  # by instruction: the last fruitless look at an mbarrier
        # By the number of a barrier: the threads that each lane counts on there (0: it has not come), and how
        # often the barrier was complete, by block.
        self.came: dict[int, Array] = {}
        self.phases: dict[int, Array] = {}
        self._hear(frame)
        self._fill_specials(lane)
        for begin in self.on_begin:
            begin(self)

    # ---- set-up ----------------------------------------------------------------------------------

    def _turns(self) -> Array | None:
        """The turn of each warp's team, (B, W); None if all are one team."""
        schedule, shape = self.frame.schedule, (self.shape[0], self.shape[1] // WARP)
        if schedule.teams == 1:
            return None
        if schedule.teams is None:
            draw = np.random.default_rng(schedule.seed)
            return draw.permutation(math.prod(shape)).argsort().reshape(shape)
        draw = np.random.default_rng([schedule.seed or 0, int(self.chunk.blocks[0])])
        return draw.integers(schedule.teams, size=shape)

    def _teams(self) -> list[Array]:
        """The lanes of each team, (B, T), in order of their turns."""
        if self.turns is None:
            return []
        return [np.repeat(self.turns == turn, WARP, axis=1) for turn in range(int(self.turns.max()) + 1)]

    def _hear(self, frame: Frame) -> None:
        heard_by = frame.listeners
        self.on_begin = heard_by["begin"]
        self.on_executed = heard_by["executed"]
        self.on_guarded = heard_by["guarded"]
        self.on_branch = heard_by["branch"]
        self.on_access = heard_by["access"]
        self.shows_values = any(o.wants_values for o in frame.observers if o.access in self.on_access)
        self.on_barrier = heard_by["barrier"]
        self.on_mixed = heard_by["mixed"]
        self.on_warp_sync = heard_by["warp_sync"]
        self.on_fence = heard_by["fence"]
        self.on_arrive = heard_by["arrive"]
        self.on_commit = heard_by["committed"]
        self.on_pass = heard_by["passed"]
        self.on_stray = heard_by["stray"]
        self.on_early = heard_by["early"]
        self.on_wait = heard_by["waited"]
        self.on_product = heard_by["product"]
        self.on_tensor_product = heard_by["tensor_product"]
        self.on_tensor_done = heard_by["tensor_done"]
        self.on_tensor_memory = heard_by["tensor_memory"]
        self.on_bulk = heard_by["bulk"]
        self.on_short = heard_by["short"]
        self.on_left = heard_by["left"]
        self.watches_lanes = bool(self.on_stray) or self.frame.undefined is not None

    def _fill_specials(self, lane: Array) -> None:
        if self.cluster_size > 1:
            for slot, offset in self.program.shared_slots:
                self.registers[slot] = (self.ranks << RANK_BIT) + offset
        for slot, name in self.program.specials:
            value = self._special(name, lane)
            self.registers[slot] = (
                value.astype(np.uint32).view(np.int32)
                if value.dtype != np.int32 and (self.program.dtypes[slot].itemsize == 4)
                else value.astype(self.program.dtypes[slot])
            )

    def _special(self, name: str, lane: Array) -> Array:
        """A special register, broadcastable to (B, T); 0 for those that a simulated GPU has no use for."""
        name, _, axis = name.partition(".")
        if axis in AXES:
            return self._coordinate(name, AXES.index(axis), lane)
        warp_lane = (lane % WARP).astype(np.uint32)
        bit = np.uint32(1) << warp_lane
        match name:
            case "%laneid":
                return warp_lane[None, :]
            case "%warpid":
                return (lane // WARP)[None, :]
            case "%nwarpid":
                return np.array([[self.shape[1] // WARP]])
            case "%lanemask_eq":
                return bit[None, :]
            case "%lanemask_lt":
                return (bit - np.uint32(1))[None, :]
            case "%lanemask_le":
                return (bit | (bit - np.uint32(1)))[None, :]
            case "%lanemask_gt":
                return ~(bit | (bit - np.uint32(1)))[None, :]
            case "%lanemask_ge":
                return ~(bit - np.uint32(1))[None, :]
            case "%dynamic_smem_size":
                return np.array([[self.frame.dynamic_shared]])
            case "%total_smem_size":
                return np.array([[self.shared_bytes]])
            case "%smid":
                return self.chunk.blocks[:, None]
            case "%nsmid" | "%gridid":
                return np.array([[1]])
            case "%cluster_ctarank":
                return self.ranks
            case "%cluster_nctarank":
                return np.array([[self.cluster_size]])
            case "%is_explicit_cluster":
                return np.array([[self.frame.has_clusters]])
            case "%envreg1":
                return np.array([[self.frame.grid_barrier >> 32]])
            case "%envreg2":
                return np.array([[self.frame.grid_barrier & 0xFFFF_FFFF]])
        return ZERO["<i8"]

    def _coordinate(self, name: str, axis: int, lane: Array) -> Array:
        """Of a thread in its block, of a block in the grid, or how many of them there are along an axis."""
        grid, block, cluster = self.frame.grid, self.frame.block, self.frame.cluster
        match name:
            case "%cluster_nctaid":
                return np.array([[cluster[axis]]])
            case "%nclusterid":
                return np.array([[grid[axis] // cluster[axis]]])
            case "%clusterid":
                return self._coordinate("%ctaid", axis, lane) // cluster[axis]
            case "%cluster_ctaid":
                return self._coordinate("%ctaid", axis, lane) % cluster[axis]
            case "%ntid":
                return np.array([[block[axis]]])
            case "%nctaid":
                return np.array([[grid[axis]]])
            case "%tid":
                return thread_coordinates(lane.size, block)[2 - axis][None, :]
            case "%ctaid":
                return np.unravel_index(self.chunk.blocks, grid[::-1])[2 - axis][:, None]
        return ZERO["<i8"]

    # ---- what steps use --------------------------------------------------------------------------

    def put(self, slot: int | None, value: Array) -> None:
        """Write a register for the lanes of the group; None is the sink."""
        if slot is None:
            return
        self.registers[slot] = self.merged(slot, value) if self.protected >> slot & 1 else value

    def merged(self, slot: int, value: Array) -> Array:
        """What a protected register holds when the group's lanes write `value`."""
        assert self.lanes is not None, "Registers are only protected for lanes outside the group."
        return np.where(self.lanes, value, self.registers[slot])

    def hand_out(self, slots: Sequence[int | None], results: Sequence[Array]) -> None:
        """Write one result to each register, in the register's own type: bit for bit if it is as wide."""
        for slot, result in zip(slots, results, strict=True):
            if slot is not None:
                dtype = self.program.dtypes[slot]
                if result.dtype != dtype:
                    same = result.dtype.itemsize == dtype.itemsize and dtype.kind != "b"
                    result = result.view(dtype) if same else result.astype(dtype)
                self.put(slot, result)

    def mask(self) -> Array:
        """The group's lanes, shape (B, T)."""
        return self.full(self.lanes)

    @cached_property
    def lane_rows(self) -> Array:
        """The number of each lane, (B, T)."""
        return np.arange(math.prod(self.shape), dtype=np.int64).reshape(self.shape)

    def full(self, lanes: Array | None) -> Array:
        return self._everybody if lanes is None else widened(lanes, self.shape)

    def by_warp(self, lanes: Array) -> Array:
        """(b, t) → (b, W, 32)."""
        if lanes.shape[1] != self.shape[1]:
            lanes = np.broadcast_to(lanes, (lanes.shape[0], self.shape[1]))
        return lanes.reshape(lanes.shape[0], -1, WARP)

    @contextmanager
    def only(self, lanes: Array | None) -> Iterator[None]:
        """For a while the group is these lanes."""
        before = self.lanes
        self.lanes = lanes
        try:
            yield
        finally:
            self.lanes = before

    @contextmanager
    def unheard(self) -> Iterator[None]:
        """A context in which no observer is told of accesses."""
        before = self.on_access
        self.on_access = []
        try:
            yield
        finally:
            self.on_access = before

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

    def register(self, name: str, row: int, lane: int) -> np.generic:
        """What a register holds for one thread."""
        return np.broadcast_to(self.registers[self.program.slots[name]], self.shape)[row, lane]

    def stored(self, name: str, offset: int, nbytes: int, row: int, lane: int) -> bytes:
        """Bytes of a thread's local variable or of a kernel's parameter; empty for any other name."""
        if name in self.program.local_variables:
            start = self.program.local_variables[name] + offset
            return self.local[row, lane][start : start + nbytes].tobytes()
        for parameter in self.program.parameters:
            if parameter.name == name:
                start = parameter.offset + offset
                return self.frame.arguments[start : start + nbytes]
        return b""

    def thread(self, lane: int) -> Index:
        return index_of(lane, self.frame.block)

    def block(self, row: int) -> Index:
        return index_of(self.chunk.blocks[row], self.frame.grid)

    def blame(self, index: int, bad: Array | None = None) -> Blame:
        """The fields of a fault: kernel, place, and the first lane of the group that is in `bad`."""
        lanes = self.mask() if bad is None else self.mask() & np.broadcast_to(bad, self.shape)
        row, lane = np.unravel_index(int(lanes.argmax()), self.shape)
        return Blame(
            kernel=self.program.display_name,
            location=self.program.instructions[index].location,
            block=self.block(int(row)),
            thread=self.thread(int(lane)),
            others=int(lanes.sum()) - 1,
            linear=(int(self.chunk.blocks[row]), int(lane)),
        )

    def changed(self) -> None:
        """Memory has changed: what others wait for may have come."""
        self.changes += 1
        self.in_vain = False
        self.forget()

    def looked(self, in_vain: bool) -> None:
        """A group has polled memory that only others can change, without success if it must wait for them."""
        self.idle += PATIENCE if in_vain else 1
        self.in_vain |= in_vain

    def forget(self) -> None:
        self.idle = 0
        self.visited.clear()
        self.ran.clear()
        self.following = False

    def contents(self, needed: int) -> list[Array]:
        return [register for slot, register in enumerate(self.registers) if needed >> slot & 1]

    def needed(self) -> int:
        """Registers that lanes outside the running group still need."""
        segments = self.program.segments
        needed = 0
        for place in self.ready:
            needed |= segments[place.segment].live
        for number in self.at_barrier:
            needed |= segments[number].live
        for number in self.at_warp:
            needed |= segments[number].live
        for number in self.at_cluster:
            needed |= segments[number].live
        return needed

    def spend(self, segment: Segment) -> None:
        self.spent += segment.stop - segment.first
        self.clock += segment.stop - segment.first
        if self.frame.limit is not None:
            if self.spent > self.frame.limit:
                raise self._endless(segment, f"after {self.frame.limit:,} instructions.", ENDS)
        elif self.spent > self.timed_after:
            self._ask_the_clock(segment)

    def _ask_the_clock(self, segment: Segment) -> None:
        """Stop a chunk that has run for too many instructions and for too long."""
        now = time.thread_time()
        self.timed_after = self.spent + LIMIT // 100
        self.began = now if self.began is None else self.began
        if now - self.began > SECONDS:
            after = f"after {self.spent:,} instructions and {SECONDS:.0f} s of simulation."
            raise self._endless(segment, after, f"{ENDS}\n{MORE}")

    def _endless(self, segment: Segment, after: str, advice: str) -> StillRunning:
        index = max(segment.stop - 1, segment.first)
        return StillRunning(**self.blame(index), what=f"was still running {after}", advice=advice)

    def alone(self) -> bool:
        return not self.ready and len(self.at_barrier) + len(self.at_warp) + len(self.at_cluster) == 1
