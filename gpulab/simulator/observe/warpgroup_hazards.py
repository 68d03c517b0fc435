"""Products of warpgroups whose operands or results are touched at the wrong time.

Between ``wgmma.mma_async`` and its ``wait_group`` the tensor cores use the registers of the accumulator and
of an A in registers, and shared memory, when they like. What a thread writes to such registers beforehand
they see only after a ``wgmma.fence``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gpulab.simulator.ptx import Immediate, Location, Operand, Register, Vector, reads, writes
from gpulab.simulator.simt import Access, Chunk, Observer, Program, Transfer
from gpulab.simulator.simt.errors import Index, index_of, source_text, thread_words

from .bulk_ends import ends

Array = np.ndarray

WARPGROUP = 128
CHUNK = 16  # bytes of shared memory that are looked at together
# What went wrong → its heading, what the first line does, what the second, and the cure.
WORDS = {
    "early": (
        "Product not waited for",
        "starts the product",
        "touches its accumulator too early",
        "wait for the product (wgmma.wait_group) before its accumulator is read or written.",
    ),
    "reused": (
        "Product not waited for",
        "starts the product",
        "overwrites its A in registers too early",
        "wait for the product (wgmma.wait_group) before the registers of A get new values.",
    ),
    "overwritten": (
        "Product not waited for",
        "starts the product",
        "overwrites an operand in shared memory too early",
        "wait for the product (wgmma.wait_group), then a barrier, and only then fill the tile again.",
    ),
    "sum": (
        "Product not waited for",
        "asks for the product",
        "touches its sum in Tensor Memory too early",
        "wait at the mbarrier of a tcgen05.commit behind the product before its sum is read or written.",
    ),
    "operand": (
        "Product not waited for",
        "asks for the product",
        "overwrites an operand in shared memory too early",
        "wait at the mbarrier of a tcgen05.commit behind the product, and only then fill the tile again.",
    ),
    "loading": (
        "Load from Tensor Memory not waited for",
        "loads registers from Tensor Memory",
        "hands on what it loaded before that is there",
        "tcgen05.wait::ld between the load and the first use of what it loads.",
    ),
    "storing": (
        "Store to Tensor Memory not waited for",
        "stores registers to Tensor Memory",
        "asks for a product that uses these columns before the store is done",
        "tcgen05.wait::st by the threads that stored, then a barrier, and only then tcgen05.mma.",
    ),
    "unfenced": (
        "Registers not fenced",
        "writes a register of the product",
        "starts the product, which may see the old value",
        "wgmma.fence between the last write to A or the accumulator and the product.",
    ),
}


@dataclass(frozen=True)
class Hazard:
    """One of `WORDS`: the lines of the program in the order of its run, and a thread that did it."""

    kind: str
    kernel: str
    first: Location | None
    second: Location | None
    block: Index
    thread: Index

    def __str__(self) -> str:
        heading, does, then, cure = WORDS[self.kind]
        lines = [place.line if place else 0 for place in (self.first, self.second)]
        width = max(len(source_text(self.first)), len(source_text(self.second)))
        return "\n".join(
            [
                f"{heading} in kernel {self.kernel}",
                f"    {lines[0]:4} │ {source_text(self.first):<{width}}   {does}",
                f"    {lines[1]:4} │ {source_text(self.second):<{width}}   {then}",
                f"{thread_words(self.thread, self.block)} did so.",
                f"Usual cure: {cure}",
            ]
        )


@dataclass
class _Flight:
    """A product on its way: for which warpgroups (B, G), their chunks of shared memory (B, chunks), and the
    registers that it adds to, with those that a compiler has copied them to."""

    index: int
    waiting: Array
    chunks: Array
    sums: set[str]


@dataclass(frozen=True)
class Touch:
    """Registers that an instruction reads and writes. A copy writes what `copied` has (empty: a literal)."""

    index: int
    read: frozenset[str]
    written: frozenset[str]
    copied: str | None


@dataclass
class _State:
    """Of a chunk of blocks: products on their way; and of registers the instruction that wrote them last, and
    for which warpgroups (B, G) they were written since the warpgroup's last fence."""

    flights: list[_Flight] = field(default_factory=list)
    unfenced: dict[str, tuple[int, Array]] = field(default_factory=dict)


class WarpgroupHazards(Observer):
    """Finds them; read `findings` after the launch, each pair of source lines once."""

    def __init__(self) -> None:
        self.findings: list[Hazard] = []
        self._seen: set[object] = set()

    def start(self, program: Program, grid: Index, block: Index) -> None:
        self._program, self._grid, self._block = program, grid, block
        instructions = program.instructions
        products = [i for i, each in enumerate(instructions) if each.parts[:2] == ("wgmma", "mma_async")]
        self._sums = {i: registers_in(instructions[i].operands[0]) for i in products}
        self._held = {i: registers_in(instructions[i].operands[1]) for i in products}
        self._looks = bool(products)
        self._of_products = _with_copies(
            program, set[str]().union(*self._sums.values(), *self._held.values())
        )
        self._touches: dict[tuple[int, int], list[Touch]] = {}
        self._chunks: dict[int, tuple[Chunk, _State]] = {}
        self._now: _Flight | None = None  # whose operands the next accesses are

    # ---- what happens ----------------------------------------------------------------------------

    def executed(self, first: int, stop: int, lanes: Array | None, chunk: Chunk) -> None:
        if not self._looks:
            return
        state = self._state(chunk)
        here = _warpgroups(lanes, chunk)
        instruction = self._program.instructions[first]
        if instruction.parts[0] == "wgmma":
            if instruction.parts[1] == "fence":
                self._fenced(state, here)
            return
        for touch in self._touched(first, stop):
            for flight in state.flights:
                if (both := flight.waiting & here).any():
                    self._touch(flight, touch, lanes_of(both, chunk) & all_lanes(lanes, chunk), chunk)
            self._note(state, touch, here)

    def _touch(self, flight: _Flight, touch: Touch, who: Array, chunk: Chunk) -> None:
        """A register of a product on its way is touched. Copies of it are the compiler's, and on their way,
        too."""
        if touch.copied:
            if touch.copied in flight.sums:
                flight.sums |= touch.written
            return
        if not flight.sums.isdisjoint(touch.read | touch.written):
            self._tell("early", flight.index, touch.index, who, chunk)
        elif not touch.written.isdisjoint(self._held[flight.index]):
            self._tell("reused", flight.index, touch.index, who, chunk)

    @staticmethod
    def _note(state: _State, touch: Touch, here: Array) -> None:
        """Remember what a thread writes. What a copy holds was written where its source was; constants are
        there before everything else."""
        for name in touch.written:
            index, where = state.unfenced.pop(name, (touch.index, np.zeros_like(here)))
            if touch.copied is None:
                index, where = touch.index, where | here
            else:
                of, there = state.unfenced.get(touch.copied, (index, np.zeros_like(here)))
                where = where & ~here | there & here
                index = of if (there & here).any() else index
            if where.any():
                state.unfenced[name] = index, where

    def product(self, index: int, warpgroups: Array, made: bool, chunk: Chunk) -> None:
        state = self._state(chunk)
        self._now = None
        if made:
            for flight in state.flights:
                if flight.index == index and (flight.waiting & warpgroups).any():
                    flight.waiting = flight.waiting & ~warpgroups
                    break
            state.flights = [flight for flight in state.flights if flight.waiting.any()]
            return
        if self._fence_before(index):
            self._fenced(state, warpgroups)
        for name in self._sums[index] | self._held[index]:
            wrote_at, where = state.unfenced.get(name, (0, warpgroups))
            if name in state.unfenced and (both := where & warpgroups).any():
                self._tell("unfenced", wrote_at, index, lanes_of(both, chunk), chunk)
        self._now = _Flight(index, warpgroups, np.zeros((chunk.blocks.size, 0), bool), set(self._sums[index]))
        state.flights.append(self._now)

    def access(self, access: Access) -> None:
        if not self._looks or access.space != "shared":
            return
        if access.instruction.parts[0] == "wgmma":
            if self._now is not None and self._now.index == access.index:
                self._remember(self._now, access)
        elif access.kind != "load":
            row, chunk = _places(access)
            for flight in self._state(access.chunk).flights:
                hit = _hits(flight, row, chunk)
                rows = np.zeros((access.chunk.blocks.size, 1), bool)
                rows[row[hit]] = True
                who = rows & all_lanes(access.lanes, access.chunk)
                self._tell("overwritten", flight.index, access.index, who, access.chunk)

    def bulk(self, transfer: Transfer) -> None:
        """A bulk copy is looked at when it is sent: it may come at any time from then on."""
        flights = self._state(transfer.chunk).flights if self._looks else []
        for end in ends(transfer) if flights else ():
            if end.space != "shared" or not end.writes:
                continue
            for flight in flights:
                hit = _hits(flight, end.owner, end.address // CHUNK)
                who = np.zeros((transfer.chunk.blocks.size, transfer.chunk.lanes_per_block), bool)
                who[end.row[hit], end.lane[hit]] = True
                self._tell("overwritten", flight.index, transfer.index, who, transfer.chunk)

    # ---- what is known ---------------------------------------------------------------------------

    def _state(self, chunk: Chunk) -> _State:
        return self._chunks.setdefault(id(chunk), (chunk, _State()))[1]

    def _touched(self, first: int, stop: int) -> list[Touch]:
        """How the instructions of a segment touch registers of products."""
        known = self._touches.get((first, stop))
        if known is None:
            all_ = (touch_of(self._program, index) for index in range(first, stop))
            known = [t for t in all_ if not self._of_products.isdisjoint(t.read | t.written)]
            self._touches[first, stop] = known
        return known

    def _fence_before(self, index: int) -> bool:
        """Whether a fence stands before a product among the wgmma instructions in a row with it."""
        while index and (parts := self._program.instructions[index - 1].parts)[0] == "wgmma":
            if parts[1] == "fence":
                return True
            index -= 1
        return False

    @staticmethod
    def _fenced(state: _State, warpgroups: Array) -> None:
        left = {name: (index, where & ~warpgroups) for name, (index, where) in state.unfenced.items()}
        state.unfenced = {name: each for name, each in left.items() if each[1].any()}

    @staticmethod
    def _remember(flight: _Flight, access: Access) -> None:
        row, chunk = _places(access)
        if (more := int(chunk.max(initial=0)) + 1 - flight.chunks.shape[1]) > 0:
            flight.chunks = np.pad(flight.chunks, ((0, 0), (0, more)))
        flight.chunks[row, chunk] = True

    def _tell(self, kind: str, first: int, second: int, who: Array, chunk: Chunk) -> None:
        """Note what the lanes `who` (B, T) did, unless they are none or it is known."""
        if not who.any():
            return
        places = [self._program.instructions[i].location for i in (first, second)]
        if (kind, *places) in self._seen:
            return
        self._seen.add((kind, *places))
        row, lane = (int(i) for i in np.unravel_index(int(who.argmax()), who.shape))
        block = int(chunk.blocks[row])
        self.findings.append(
            Hazard(
                kind,
                self._program.display_name,
                places[0],
                places[1],
                index_of(block, self._grid),
                index_of(lane, self._block),
            )
        )


def touch_of(program: Program, index: int) -> Touch:
    instruction = program.instructions[index]
    copied = None
    if instruction.parts[0] == "mov" and isinstance(instruction.operands[0], Register):
        source = instruction.operands[1]
        if isinstance(source, Register | Immediate):
            copied = source.name if isinstance(source, Register) else ""
    return Touch(index, frozenset(reads(instruction)), frozenset(writes(instruction)), copied)


def _with_copies(program: Program, names: set[str]) -> frozenset[str]:
    """Some registers, those that they are copied from, and those that they are copied to."""
    copies = [t for i in range(len(program.instructions)) if (t := touch_of(program, i)).copied]
    found, before = set(names), 0
    while len(found) > before:
        before = len(found)
        for copy in copies:
            if not found.isdisjoint(copy.read | copy.written):
                found |= copy.read | copy.written
    return frozenset(found)


def registers_in(operand: Operand) -> frozenset[str]:
    """The registers of a list; none for the descriptor of a matrix in shared memory."""
    items = operand.items if isinstance(operand, Vector) else ()
    return frozenset(item.name for item in items if isinstance(item, Register))


def all_lanes(lanes: Array | None, chunk: Chunk) -> Array:
    shape = chunk.blocks.size, chunk.lanes_per_block
    return np.broadcast_to(True if lanes is None else lanes, shape)


def _warpgroups(lanes: Array | None, chunk: Chunk) -> Array:
    """The warpgroups (B, G) of some lanes."""
    count = chunk.lanes_per_block // WARPGROUP
    whole = all_lanes(lanes, chunk)[:, : count * WARPGROUP].reshape(-1, count, WARPGROUP)
    return np.asarray(whole.any(axis=-1))


def lanes_of(warpgroups: Array, chunk: Chunk) -> Array:
    """The lanes (B, T) of some warpgroups."""
    lanes = np.zeros((chunk.blocks.size, chunk.lanes_per_block), bool)
    lanes[:, : warpgroups.shape[1] * WARPGROUP] = warpgroups.repeat(WARPGROUP, axis=1)
    return lanes


def _hits(flight: _Flight, row: Array, chunk: Array) -> Array:
    """Which of some chunks of shared memory, each of the block in its row, are operands of a product."""
    known = chunk < flight.chunks.shape[1]
    hit = np.zeros(chunk.size, bool)
    hit[known] = flight.chunks[row[known], chunk[known]] & flight.waiting[row[known]].any(axis=1)
    return hit


def _places(access: Access) -> tuple[Array, Array]:
    """The row of each lane of an access, and the chunk that it touches: the first and the last of them."""
    row, lane = np.nonzero(all_lanes(access.lanes, access.chunk))
    address = np.broadcast_to(access.address, (access.chunk.blocks.size, access.chunk.lanes_per_block))
    first = address[row, lane]
    return np.concatenate([row, row]), np.concatenate([first, first + access.size - 1]) // CHUNK
