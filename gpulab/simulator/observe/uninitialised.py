"""Reads of memory that nothing has written: shared and local memory of this launch, and fresh global
arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpulab.simulator.ptx import Location
from gpulab.simulator.simt import Access, ArrayLabel, Observer, Program, Transfer
from gpulab.simulator.simt.errors import Index, index_of, source_text, thread_words

from .bulk_ends import ends
from .granules import WIDEST, Granules, Pages, granule_of

Array = np.ndarray


@dataclass(frozen=True)
class UninitialisedRead:
    """A thread read memory before anything wrote it. `what` names the place."""

    kernel: str
    location: Location | None
    block: Index
    thread: Index
    what: str
    others: int

    def __str__(self) -> str:
        line = self.location.line if self.location else 0
        lines = [f"Uninitialised read in kernel {self.kernel}, line {line}"]
        if text := source_text(self.location):
            lines.append(f"    {line} │ {text}")
        lines.append(f"{thread_words(self.thread, self.block)} read {self.what}, which nothing has written.")
        if self.others:
            lines.append(f"{self.others:,} more thread{'s' if self.others > 1 else ''} did so.")
        lines.append("Usual cure: let some thread write every element before the first one is read.")
        return "\n".join(lines)


class _Written(Granules):
    """Which granules of each row have been written: alone, or in all rows at once."""

    arrays: ClassVar[tuple[str, ...]] = ("alone", "common")

    def __init__(self, granule: int, width: int, rows: int = 1, pages: Pages | None = None) -> None:
        super().__init__(granule, width, pages)
        self.alone = np.zeros(rows * width, bool)
        self.common = np.zeros(width, bool)


class Uninitialised(Observer):
    """Finds reads of unwritten memory; read `findings` after the launch, each source line once.

    `fresh` are the global arrays whose contents nobody has set before the launch.
    """

    def __init__(self, fresh: tuple[ArrayLabel, ...] = ()) -> None:
        self.findings: list[UninitialisedRead] = []
        self._fresh = fresh
        self._seen: set[object] = set()
        self._written: dict[object, _Written] = {}

    def start(self, program: Program, grid: Index, block: Index) -> None:
        self._program, self._grid, self._block = program, grid, block

    def access(self, access: Access) -> None:
        if access.space in ("shared", "local", "cluster"):
            if not self._is_alike(access):
                self._look(access)
        elif access.space == "global" and self._fresh:
            self._look(access)

    def bulk(self, transfer: Transfer) -> None:
        for end in ends(transfer):
            if end.address.size and (end.space == "shared" or self._fresh):
                access, what = end.access(transfer), (end.reads, end.writes)
                self._examine(access, end.address, end.row, end.lane, end.owner, *what)

    def _window(self, access: Access) -> _Written:
        """What has been written of the shared or local memory of the blocks that run together."""
        chunk = access.chunk
        key = ("local" if access.space == "local" else "shared", int(chunk.blocks[0]))
        if key not in self._written:
            rows = chunk.blocks.size * (chunk.lanes_per_block if access.space == "local" else 1)
            self._written[key] = _Written(WIDEST, 1, rows)
        written = self._written[key]
        written.fit(int(access.address.max()) + access.size, access.size)
        return written

    def _is_alike(self, access: Access) -> bool:
        """Look at one row for all, if each does the same and reads what all have written."""
        address, lanes = access.address, access.lanes
        if access.space == "cluster":
            return False
        if access.space == "shared":
            if address.shape[0] > 1 or (lanes is not None and lanes.shape[0] > 1):
                return False
            shape = (1, access.chunk.lanes_per_block)
            offset = np.broadcast_to(address, shape)[np.broadcast_to(True if lanes is None else lanes, shape)]
        elif address.size > 1 or lanes is not None:
            return False
        else:
            offset = address[0]
        written = self._window(access)
        for i in range(max(access.size // written.granule, 1)):
            place = offset // written.granule + i
            if _reads(access) and not written.common[place].all():
                return False
            written.common[place] = True
        return True

    def _look(self, access: Access) -> None:
        chunk = access.chunk
        shape = (chunk.blocks.size, chunk.lanes_per_block)
        row, lane = np.nonzero(np.broadcast_to(True if access.lanes is None else access.lanes, shape))
        address = np.broadcast_to(access.address, shape)[row, lane]
        owner = row if access.space != "local" else row * chunk.lanes_per_block + lane
        if access.rows is not None:
            owner = np.broadcast_to(access.rows, shape)[row, lane]
        self._examine(access, address, row, lane, owner, _reads(access), access.kind != "load")

    def _examine(
        self, access: Access, address: Array, row: Array, lane: Array, owner: Array, reads: bool, writes: bool
    ) -> None:
        """Elements at `address`, of the shared or local memory numbered `owner`, that the threads at `row`
        and `lane` read and write; all have the shape (n,)."""
        chunk = access.chunk
        for written, whose, first, chosen, label in self._places(access, address, owner):
            missing = np.zeros(len(first), bool)
            for i in range(max(access.size // written.granule, 1)):
                place = first + i
                spot = whose * written.width + place
                if reads:
                    missing |= ~(written.alone[spot] | written.common[place])
                if writes:
                    written.alone[spot] = True
            if missing.any():
                at = int(np.flatnonzero(chosen)[int(missing.argmax())])
                block = int(chunk.blocks[row[at]])
                self._report(access, block, int(lane[at]), int(address[at]), label, int(missing.sum()))

    def _places(self, access: Access, address: Array, owner: Array) -> list[tuple[Any, ...]]:
        """(what has been written, row and first granule of each element in it, elements concerned, array) for
        each stretch of memory."""
        if access.space != "global":
            written = self._window(access)
            return [(written, owner, address // written.granule, np.ones(len(address), bool), None)]
        found = []
        for label in self._fresh:
            here = (address >= label.address) & (address < label.address + label.extent)
            if here.any():
                if label not in self._written:
                    pages = Pages(label.address, label.extent)
                    self._written[label] = _Written(granule_of(access.size), 1, pages=pages)
                written = self._written[label]
                found.append((written, 0, written.places(address[here], access.size), here, label))
        return found

    def _report(
        self, access: Access, block: int, lane: int, address: int, label: ArrayLabel | None, count: int
    ) -> None:
        location = access.instruction.location
        if (key := location or access.index) in self._seen:
            return
        self._seen.add(key)
        if label is not None:
            what = f"{label.name}[{', '.join(map(str, label.index_of(address)))}]"
        else:
            element = max(access.size // max(len(access.values), 1), 1)
            what = f"element {address // element} of {access.space} memory"
        self.findings.append(
            UninitialisedRead(
                self._program.display_name,
                location,
                index_of(block, self._grid),
                index_of(lane, self._block),
                what,
                count - 1,
            )
        )


def _reads(access: Access) -> bool:
    return access.kind != "store" and "exch" not in access.instruction.parts
