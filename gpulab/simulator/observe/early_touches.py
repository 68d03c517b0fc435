"""Copies that nobody waited for: shared memory touched before what ``cp.async`` sent has arrived."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpulab.simulator.ptx import Location
from gpulab.simulator.simt import Chunk, Observer, Program
from gpulab.simulator.simt.errors import Index, source_text, thread_words


@dataclass(frozen=True)
class EarlyTouch:
    """Shared memory was touched while ``cp.async``, at `copied`, was still on its way to it."""

    kernel: str
    copied: Location | None
    location: Location | None
    block: Index
    thread: Index

    def __str__(self) -> str:
        first, second = (place.line if place else 0 for place in (self.copied, self.location))
        width = max(len(source_text(self.copied)), len(source_text(self.location)))
        return "\n".join(
            [
                f"Copy not waited for in kernel {self.kernel}",
                f"    {first:4} │ {source_text(self.copied):<{width}}   starts the copy",
                f"    {second:4} │ {source_text(self.location):<{width}}   touches its place too early",
                f"{thread_words(self.thread, self.block)} did so.",
                "Usual cure: wait for the copy (cp.async.wait_group), then a barrier, and only then read.",
            ]
        )


class EarlyTouches(Observer):
    """Finds them; read `findings` after the launch, each pair of source lines once."""

    def __init__(self) -> None:
        self.findings: list[EarlyTouch] = []
        self._seen: set[object] = set()

    def start(self, program: Program, grid: Index, block: Index) -> None:
        self._program, self._grid, self._block = program, grid, block

    def early(self, index: int, copied: int, lanes: np.ndarray, chunk: Chunk) -> None:
        if self._program.instructions[index].parts[0] == "cp":
            return  # two copies to one place: what reads it says more
        start, here = (self._program.instructions[i].location for i in (copied, index))
        if (start, here) in self._seen:
            return
        self._seen.add((start, here))
        row, lane = (int(i) for i in np.unravel_index(int(lanes.argmax()), lanes.shape))
        (x, y, _), (gx, gy, _) = self._block, self._grid
        block = int(chunk.blocks[row])
        where = (block % gx, block // gx % gy, block // (gx * gy))
        thread = (lane % x, lane // x % y, lane // (x * y))
        self.findings.append(EarlyTouch(self._program.display_name, start, here, where, thread))
