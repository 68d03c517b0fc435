"""The last writer of each element (block, thread and instruction), for arrays that are asked about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpulab.simulator.ptx import Instruction, Location
from gpulab.simulator.simt import Access, Observer, Program, Transfer

from .counters import bulk_kind
from .recorder import Index, unravel

NOBODY = -1
WRITING = ("st", "atom", "red")  # opcodes
BULK_WRITING = ("store", "reduction")  # kinds of bulk copies
ELSEWHERE = {"shared", "shared::cta", "shared::cluster", "local", "param"}  # spaces that end with the launch


@dataclass(frozen=True)
class Range:
    """`count` elements of `itemsize` bytes in global memory from `address` on, without gaps."""

    address: int
    count: int
    itemsize: int


@dataclass(frozen=True)
class Writer:
    """One thread at one place of the source. `launch` counts from 0."""

    kernel: str
    launch: int
    block: Index
    thread: Index
    location: Location | None

    def __str__(self) -> str:
        return f"thread {self.thread} of block {self.block}"


@dataclass
class _Launch:
    kernel: str
    grid: Index
    block: Index
    stores: bool  # has an instruction that writes to global memory
    lanes: int = 0  # threads per block, rounded up to whole warps


class Writers(Observer):
    """Watches named ranges of global memory over any number of launches.

    With `line` it is not writing that counts but any access on that line of the source.
    """

    def __init__(self, ranges: Mapping[str, Range] | None = None, line: int | None = None) -> None:
        self._line = line
        self.ranges: dict[str, Range] = {}
        self.launches: list[_Launch] = []
        self._last: dict[str, np.ndarray] = {}
        self._site: dict[str, np.ndarray] = {}
        self._times: dict[str, np.ndarray] = {}
        self.watch(ranges or {})
        self._sites: list[tuple[int, Instruction]] = []  # (launch, instruction)
        self._known: dict[tuple[int, int], int] = {}  # (launch, instruction's index) → place in _sites

    def watch(self, ranges: Mapping[str, Range]) -> None:
        """Watch these, too."""
        for name, r in ranges.items():
            self.ranges[name] = r
            self._last[name] = np.full(r.count, NOBODY, np.int64)
            self._site[name] = np.zeros(r.count, np.int32)
            self._times[name] = np.zeros(r.count, np.int32)

    def start(self, program: Program, grid: Index, block: Index) -> None:
        self.launches.append(_Launch(program.display_name, grid, block, _stores(program)))

    def access(self, access: Access) -> None:
        if access.space != "global" or not self._counts(access.instruction, access.kind):
            return
        chunk = access.chunk
        self.launches[-1].lanes = chunk.lanes_per_block
        shape = (len(chunk.blocks), chunk.lanes_per_block)
        real = np.arange(chunk.lanes_per_block) < chunk.threads_per_block
        lanes = np.broadcast_to(real if access.lanes is None else access.lanes & real, shape)
        address = np.broadcast_to(access.address, shape)[lanes].astype(np.int64)
        who = (chunk.blocks.astype(np.int64)[:, None] * chunk.lanes_per_block + np.arange(shape[1]))[lanes]
        self._note(address, access.size, who, self._place(access.index, access.instruction))

    def bulk(self, transfer: Transfer) -> None:
        """A bulk copy counts as writes of the thread that sent it."""
        if transfer.address is None or not self._counts(transfer.instruction, transfer.kind):
            return
        chunk = transfer.chunk
        self.launches[-1].lanes = chunk.lanes_per_block
        there = np.ones(transfer.address.shape, bool) if transfer.inside is None else transfer.inside
        sender = chunk.blocks.astype(np.int64)[transfer.row] * chunk.lanes_per_block + transfer.lane
        who = np.broadcast_to(sender[:, None], there.shape)[there]
        place = self._place(transfer.index, transfer.instruction)
        self._note(transfer.address[there].astype(np.int64), transfer.size, who, place)

    def _note(self, address: np.ndarray, size: int, who: np.ndarray, place: int) -> None:
        """`size` bytes from each `address` on were written by `who`, all (n,)."""
        for name, r in self.ranges.items():
            first = (address - r.address) // r.itemsize
            last = (address - r.address + size - 1) // r.itemsize
            for step in range(int((last - first).max(initial=0)) + 1):
                element = first + step
                inside = (element >= 0) & (element <= last) & (element < r.count)
                self._last[name][element[inside]] = who[inside]
                self._site[name][element[inside]] = place
                np.add.at(self._times[name], element[inside], 1)

    def _counts(self, instruction: Instruction, kind: str) -> bool:
        if self._line is None:
            return kind not in ("load", "prefetch")
        return instruction.location is not None and instruction.location.line == self._line

    def _place(self, index: int, instruction: Instruction) -> int:
        key = (len(self.launches) - 1, index)
        if key not in self._known:
            self._known[key] = len(self._sites)
            self._sites.append((key[0], instruction))
        return self._known[key]

    def written(self, name: str) -> np.ndarray:
        """True where some thread wrote the element; 1-D, in memory order."""
        return self._last[name] != NOBODY

    def times(self, name: str) -> np.ndarray:
        """How often each element was written; 1-D, in memory order."""
        return self._times[name]

    def threads(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """The linear block and the linear thread in it that wrote each element last, -1 where nobody did.

        For arrays that one launch wrote, or launches with blocks of one size.
        """
        last = self._last[name]
        lanes = max((launch.lanes for launch in self.launches), default=1) or 1
        return np.where(last == NOBODY, NOBODY, last // lanes), np.where(last == NOBODY, NOBODY, last % lanes)

    def of(self, name: str, element: int) -> Writer | None:
        """The thread that wrote an element last (`element` in memory order); None if nobody did."""
        who = int(self._last[name][element])
        if who == NOBODY:
            return None
        number, instruction = self._sites[int(self._site[name][element])]
        launch = self.launches[number]
        block, lane = divmod(who, launch.lanes)
        return Writer(
            launch.kernel,
            number,
            unravel(block, launch.grid),
            unravel(lane, launch.block),
            instruction.location,
        )


def _stores(program: Program) -> bool:
    """Whether any instruction may write to global memory, executed or not."""
    return any(
        (i.parts[0] in WRITING and ELSEWHERE.isdisjoint(i.parts)) or bulk_kind(i) in BULK_WRITING
        for i in program.instructions
    )
