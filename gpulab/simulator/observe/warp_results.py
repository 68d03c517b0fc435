"""Shuffles and votes without a defined result: of lanes outside the mask, or that are not there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpulab.simulator.ptx import Location
from gpulab.simulator.simt import Chunk, Observer, Program
from gpulab.simulator.simt.errors import Index, index_of, source_text, thread_words

REASONS = {
    "outside": ("reads a lane outside its mask", "let the mask name every lane that is read."),
    "inactive": (
        "reads an inactive lane: that thread has returned, or there is none",
        "let all lanes of the mask reach the operation, and let a smaller mask name them if they are fewer.",
    ),
    "unnamed": ("calls with a mask that does not name itself", "let each lane's own mask name that lane."),
}


@dataclass(frozen=True)
class UndefinedResult:
    """Lanes for which a warp operation has no defined result; `why` is a key of `REASONS`."""

    kernel: str
    location: Location | None
    operation: str
    why: str
    block: Index
    thread: Index
    others: int

    def __str__(self) -> str:
        does, cure = REASONS[self.why]
        line = self.location.line if self.location else 0
        lines = [f"Undefined {self.operation} in kernel {self.kernel}, line {line}"]
        if text := source_text(self.location):
            lines.append(f"    {line} │ {text}")
        lines.append(f"{thread_words(self.thread, self.block)} {does}.")
        if self.others:
            lines.append(f"{self.others:,} more thread{'s' if self.others > 1 else ''} did so.")
        lines.append(f"Usual cure: {cure}")
        return "\n".join(lines)


class WarpResults(Observer):
    """Finds undefined results of warp operations; read `findings` after the launch, each source line once."""

    def __init__(self) -> None:
        self.findings: list[UndefinedResult] = []
        self._seen: set[object] = set()

    def start(self, program: Program, grid: Index, block: Index) -> None:
        self._program, self._grid, self._block = program, grid, block

    def stray(self, index: int, lanes: np.ndarray, why: str, chunk: Chunk) -> None:
        instruction = self._program.instructions[index]
        key = instruction.location or index
        if key in self._seen:
            return
        self._seen.add(key)
        row, lane = (int(i) for i in np.unravel_index(int(lanes.argmax()), lanes.shape))
        block = int(chunk.blocks[row])
        self.findings.append(
            UndefinedResult(
                self._program.display_name,
                instruction.location,
                "shuffle" if instruction.parts[0] == "shfl" else "warp operation",
                why,
                index_of(block, self._grid),
                index_of(lane, self._block),
                int(lanes.sum()) - 1,
            )
        )
