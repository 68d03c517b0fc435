"""Reads of memory that nothing has written: shared and local memory of this launch, and fresh global
arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpulab.ptx import Location
from gpulab.simt import Access, ArrayLabel, Observer, Program
from gpulab.simt.errors import Index, source_text, thread_words

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


class Uninitialised(Observer):
    """Finds reads of unwritten memory; read `findings` after the launch, each source line once.

    `fresh` are the global arrays whose contents nobody has set before the launch.
    """

    def __init__(self, fresh: tuple[ArrayLabel, ...] = ()) -> None:
        self.findings: list[UninitialisedRead] = []
        self._fresh = fresh
        self._seen: set[object] = set()
        self._written: dict[object, Array] = {}

    def start(self, program: object, grid: Index, block: Index) -> None:
        assert isinstance(program, Program)
        self._program, self._grid, self._block = program, grid, block

    def access(self, access: Access) -> None:
        if access.space not in ("shared", "local") and not self._fresh:
            return
        chunk = access.chunk
        shape = (chunk.blocks.size, chunk.lanes_per_block)
        lanes = np.broadcast_to(True if access.lanes is None else access.lanes, shape)
        row, lane = np.nonzero(lanes)
        address = np.broadcast_to(access.address, shape)[row, lane]
        for written, start, chosen, label in self._places(access, address, chunk.blocks[row], lane):
            spots = start[:, None] + np.arange(access.size)
            if access.kind != "store" and "exch" not in access.instruction.parts:
                missing = ~written.reshape(-1)[spots].all(axis=1)
                if missing.any():
                    at = int(np.flatnonzero(chosen)[int(missing.argmax())])
                    self._report(
                        access,
                        int(chunk.blocks[row[at]]),
                        int(lane[at]),
                        int(address[at]),
                        label,
                        int(missing.sum()),
                    )
            if access.kind != "load":
                written.reshape(-1)[spots] = True

    def _places(self, access: Access, address: Array, block: Array, lane: Array) -> list[tuple]:
        """(bytes written so far, first byte of each lane, lanes concerned, array) for each stretch of
        memory."""
        everywhere = np.ones(len(address), bool)
        blocks = self._grid[0] * self._grid[1] * self._grid[2]
        threads = access.chunk.lanes_per_block
        if access.space in ("shared", "local"):
            owner = block if access.space == "shared" else block * threads + lane
            owners = blocks if access.space == "shared" else blocks * threads
            width = self._width(access.space, int(address.max(initial=0)) + access.size, owners)
            return [(self._written[access.space], owner * width + address, everywhere, None)]
        found = []
        for label in self._fresh if access.space == "global" else ():
            here = (address >= label.address) & (address < label.address + label.extent)
            if here.any():
                written = self._written.setdefault(label.address, np.zeros((1, label.extent + 16), bool))
                found.append((written, (address - label.address)[here], here, label))
        return found

    def _width(self, space: str, needed: int, owners: int) -> int:
        """Bytes of one owner's window, grown when more turns out to be used."""
        have = self._written.setdefault(space, np.zeros((owners, 64), bool))
        if needed > have.shape[1]:
            self._written[space] = np.pad(have, [(0, 0), (0, 2 * needed - have.shape[1])])
        return self._written[space].shape[1]

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
        x, y, _ = self._block
        gx, gy, _ = self._grid
        self.findings.append(
            UninitialisedRead(
                self._program.display_name,
                location,
                (block % gx, block // gx % gy, block // (gx * gy)),
                (lane % x, lane // x % y, lane // (x * y)),
                what,
                count - 1,
            )
        )
