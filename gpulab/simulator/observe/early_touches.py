"""Copies that nobody waited for: shared memory touched before what ``cp.async`` sent has arrived."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpulab.simulator.ptx import Location
from gpulab.simulator.simt import Chunk, Observer, Program
from gpulab.simulator.simt.errors import Index, index_of, source_text, thread_words

from .counters import bulk_kind

FOR_READS = (
    "the thread that sent the copy waits for it (cp.async.bulk.commit_group and wait_group.read), then a "
    "barrier, and only then is the place written again."
)


FOR_BYTES = "announce (expect_tx) the bytes of every copy that completes at the mbarrier in this phase."
OVERWRITES = "overwrites what it has still to read"
BEFORE_THE_END = (
    "the thread that sent the copy waits for it (cp.async.bulk.commit_group and wait_group.read) before it "
    "returns."
)
LEFT = "and returns before it has read: its block's shared memory goes with it"
ENDS = "sees its phase end before it has come: too few bytes were announced"


@dataclass(frozen=True)
class EarlyTouch:
    """Shared memory was touched while a copy, sent at `copied`, was still on its way to it.

    `does` says so where something else was wrong: what a bulk copy had still to read was overwritten, or the
    phase that was to count its bytes ended without them.
    """

    kernel: str
    copied: Location | None
    location: Location | None
    block: Index
    thread: Index
    cure: str = "wait for the copy (cp.async.wait_group), then a barrier, and only then read."
    does: str = "touches its place too early"

    def __str__(self) -> str:
        first, second = (place.line if place else 0 for place in (self.copied, self.location))
        width = max(len(source_text(self.copied)), len(source_text(self.location)))
        rows = [
            f"    {first:4} │ {source_text(self.copied):<{width}}   starts the copy",
            f"    {second:4} │ {source_text(self.location):<{width}}   {self.does}",
        ]
        if self.does == LEFT:
            rows = [f"    {first:4} │ {source_text(self.copied)}   starts the copy, {LEFT}"]
        return "\n".join(
            [
                f"Copy not waited for in kernel {self.kernel}",
                *rows,
                f"{thread_words(self.thread, self.block)} did so.",
                f"Usual cure: {self.cure}",
            ]
        )


class EarlyTouches(Observer):
    """Finds them; read `findings` after the launch, each pair of source lines once."""

    def __init__(self) -> None:
        self.findings: list[EarlyTouch] = []
        self._seen: set[object] = set()

    def start(self, program: Program, grid: Index, block: Index) -> None:
        self._program, self._grid, self._block = program, grid, block

    def _place(
        self, index: int, copied: int, lanes: np.ndarray, chunk: Chunk
    ) -> tuple[str, Location | None, Location | None, Index, Index] | None:
        """Kernel, both lines, block and thread; None if these two lines have been reported already."""
        start, here = (self._program.instructions[i].location for i in (copied, index))
        if (start, here) in self._seen:
            return None
        self._seen.add((start, here))
        row, lane = (int(i) for i in np.unravel_index(int(lanes.argmax()), lanes.shape))
        block = int(chunk.blocks[row])
        where = index_of(block, self._grid)
        thread = index_of(lane, self._block)
        return self._program.display_name, start, here, where, thread

    def early(self, index: int, copied: int, lanes: np.ndarray, chunk: Chunk) -> None:
        if self._program.instructions[index].parts[0] == "cp":
            return  # two copies to one place: what reads it says more
        sent = self._place(index, copied, lanes, chunk)
        if sent is None:
            return
        if bulk_kind(self._program.instructions[copied]) is None:
            self.findings.append(EarlyTouch(*sent))
        else:
            self.findings.append(EarlyTouch(*sent, cure=FOR_READS, does=OVERWRITES))

    def left(self, copied: int, lanes: np.ndarray, chunk: Chunk) -> None:
        start = self._program.instructions[copied].location
        if any(found.copied == start for found in self.findings):
            return  # that it is not waited for was told already
        sent = self._place(copied, copied, lanes, chunk)
        if sent is not None:
            self.findings.append(EarlyTouch(*sent, cure=BEFORE_THE_END, does=LEFT))

    def short(self, index: int, copied: int, lanes: np.ndarray, chunk: Chunk) -> None:
        sent = self._place(index, copied, lanes, chunk)
        if sent is not None:
            self.findings.append(EarlyTouch(*sent, cure=FOR_BYTES, does=ENDS))
