"""Products of Blackwell's tensor cores whose operands or sums are touched at the wrong time.

Between ``tcgen05.mma`` and the end of a wait at the mbarrier of a commit behind it, the tensor cores read
shared memory and write Tensor Memory when they like. So do ``tcgen05.ld`` and ``tcgen05.st`` with registers
and Tensor Memory, up to their own waits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpulab.simulator.ptx import Instruction
from gpulab.simulator.simt import Access, Chunk, Observer, Program, TensorProduct, Transfer
from gpulab.simulator.simt.errors import Index, index_of

from .warpgroup_hazards import CHUNK, Hazard, all_lanes, registers_in, touch_of

Array = np.ndarray

# What no compiler moves across a wait: others see it, or threads part.
HANDS_ON = frozenset({"st", "atom", "red", "shfl", "vote", "redux", "bra", "tcgen05"})


@dataclass
class _Load:
    """A ``tcgen05.ld`` that the lanes (B, T) have not waited for, and the registers that it fills, with those
    that were computed from them since."""

    index: int
    lanes: Array
    names: set[str]


@dataclass
class _Store:
    """A ``tcgen05.st`` that the lanes (B, T) have not waited for, and the columns of each of them."""

    index: int
    lanes: Array
    first: Array
    last: Array


class TensorCoreHazards(Observer):
    """Finds them; read `findings` after the launch, each pair of source lines once. Without `loads` it does
    not look at the waits for ``tcgen05.ld``."""

    def __init__(self, loads: bool = True) -> None:
        self._follows_loads = loads
        self.findings: list[Hazard] = []
        self._seen: set[object] = set()
        self._pending: list[TensorProduct] = []

    def start(self, program: Program, grid: Index, block: Index) -> None:
        self._program, self._grid, self._block = program, grid, block
        self._moves = any(_is(each, "ld", "st") for each in program.instructions)
        self._loads: dict[int, list[_Load]] = {}  # by chunk, as are the stores
        self._stores: dict[int, list[_Store]] = {}
        self._waits: list[tuple[int, Array]] = []  # of the segment that runs: for stores, by these lanes
        self._segment, self._of = range(0), 0  # and its chunk

    def executed(self, first: int, stop: int, lanes: Array | None, chunk: Chunk) -> None:
        """Heard before the instructions run: what they do to registers is known now, and what they do to
        Tensor Memory is heard in between."""
        if not self._moves:
            return
        self._settle()
        self._segment, self._of, here = range(first, stop), id(chunk), all_lanes(lanes, chunk)
        loads = self._loads.setdefault(id(chunk), [])
        for index in self._segment:
            instruction = self._program.instructions[index]
            if _is(instruction, "wait::ld"):
                for load in loads:
                    load.lanes = load.lanes & ~here
            elif _is(instruction, "wait::st"):
                self._waits.append((index, here))
            elif loads:
                self._use(loads, index, here, chunk)
            if self._follows_loads and _is(instruction, "ld"):
                names = set().union(*map(registers_in, instruction.operands[:1]))
                loads.append(_Load(index, here, names))
        loads[:] = [load for load in loads if load.lanes.any()]

    def _use(self, loads: list[_Load], index: int, here: Array, chunk: Chunk) -> None:
        """Whether an instruction hands on what is still being loaded. Compilers move arithmetic before the
        wait, and the assembler sees to that; what they may not move is told."""
        touch = touch_of(self._program, index)
        for load in loads:
            both = load.lanes & here
            if not both.any():
                continue
            if load.names.isdisjoint(touch.read):
                load.names -= touch.written
            elif self._program.instructions[index].parts[0] in HANDS_ON:
                self._note("loading", load.index, index, both, chunk)
            else:
                load.names |= touch.written

    def _settle(self) -> None:
        """The segment that ran last has run: its waits for stores are over."""
        stores = self._stores.get(self._of, [])
        for store in stores:
            store.lanes = self._open(store, self._segment.stop)
        stores[:] = [store for store in stores if store.lanes.any()]
        self._waits = []

    def _open(self, store: _Store, index: int) -> Array:
        """The lanes that have not waited for a store when they come to an instruction of the segment."""
        since = store.index if store.index in self._segment else -1
        lanes = store.lanes
        for at, who in self._waits:
            if since < at < index:
                lanes = lanes & ~who
        return lanes

    def tensor_product(self, product: TensorProduct) -> None:
        self._pending.append(product)
        shape = (product.chunk.blocks.size, product.chunk.lanes_per_block)
        ranges = [product.columns, *([product.held] if product.held else [])]
        for store in self._stores.get(id(product.chunk), []):
            late = self._open(store, product.index) & np.isin(np.arange(shape[0]), product.rows)[:, None]
            for begin, end in ranges:
                hit = late & (store.first <= end) & (store.last >= begin)
                self._note("storing", store.index, product.index, hit, product.chunk)

    def tensor_done(self, product: TensorProduct) -> None:
        self._pending = [each for each in self._pending if each is not product]

    def tensor_memory(self, index: int, lanes: Array | None, first: Array, last: Array, chunk: Chunk) -> None:
        shape = (chunk.blocks.size, chunk.lanes_per_block)
        there = np.broadcast_to(True if lanes is None else lanes, shape)
        for product in self._pending:
            begin, end = product.columns
            touched = there & (first <= end) & (last >= begin)
            touched &= np.isin(np.arange(shape[0]), product.rows)[:, None]
            self._tell("sum", product, index, touched)
        if _is(self._program.instructions[index], "st"):
            columns = (np.broadcast_to(column, shape) for column in (first, last))
            self._stores.setdefault(id(chunk), []).append(_Store(index, there, *columns))

    def access(self, access: Access) -> None:
        if not self._pending or access.space != "shared" or access.kind == "load":
            return
        chunk = access.chunk
        shape = (chunk.blocks.size, chunk.lanes_per_block)
        there = np.broadcast_to(True if access.lanes is None else access.lanes, shape)
        piece = np.broadcast_to(access.address, shape) // CHUNK
        for product in self._pending:
            for row, offsets in product.reads:
                hit = np.zeros(shape, bool)
                hit[row] = there[row] & np.isin(piece[row], offsets // CHUNK)
                self._tell("operand", product, access.index, hit)

    def bulk(self, transfer: Transfer) -> None:
        if transfer.offset is None or transfer.rows is None or transfer.kind not in ("load", "exchange"):
            return
        shape = (transfer.chunk.blocks.size, transfer.chunk.lanes_per_block)
        copy = transfer.copy if transfer.copy is not None else np.arange(transfer.rows.size)
        for product in self._pending:
            for row, offsets in product.reads:
                hit = np.zeros(shape, bool)
                for n in np.flatnonzero(transfer.rows == row):
                    if np.isin(transfer.offset[n] // CHUNK, offsets // CHUNK).any():
                        hit[transfer.row[copy[n]], transfer.lane[copy[n]]] = True
                self._tell("operand", product, transfer.index, hit)

    def _tell(self, kind: str, product: TensorProduct, index: int, lanes: Array) -> None:
        self._note(kind, product.index, index, lanes, product.chunk)

    def _note(self, kind: str, earlier: int, later: int, lanes: Array, chunk: Chunk) -> None:
        """Note what the lanes (B, T) did, unless it is known."""
        if not lanes.any():
            return
        first, second = (self._program.instructions[i].location for i in (earlier, later))
        key = (kind, first or earlier, second or later)
        if key in self._seen:
            return
        self._seen.add(key)
        row, lane = (int(i) for i in np.argwhere(lanes)[0])
        block = int(chunk.blocks[row])
        where = index_of(block, self._grid)
        thread = index_of(lane, self._block)
        self.findings.append(Hazard(kind, self._program.display_name, first, second, where, thread))


def _is(instruction: Instruction, *names: str) -> bool:
    """Whether it is one of these of ``tcgen05``."""
    return instruction.parts[0] == "tcgen05" and instruction.parts[1] in names
