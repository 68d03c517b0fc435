"""What the warps of one block run, line by line, with the lanes that take part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpulab.simulator.simt import Chunk, Observer, Program

WARP = 32
WARPS = 16  # of the block that are followed
PASSES = 400  # of a warp that are kept


@dataclass(frozen=True)
class LinePass:
    """Instructions of one source line (0: none is known) that a warp ran one after the other with the same
    lanes; `lanes` has 32 entries."""

    line: int
    lanes: tuple[bool, ...]
    instructions: int


class WarpPasses(Observer):
    """Follows the first warps of block 0; read `warps` after the launch, a list of passes for each warp."""

    def __init__(self) -> None:
        self.kernel = ""
        self.warps: list[list[LinePass]] = []
        self._lines: tuple[int, ...] = ()

    def start(self, program: Program, grid: object, block: object) -> None:
        self.kernel = program.display_name
        self._lines = tuple(i.location.line if i.location else 0 for i in program.instructions)

    def executed(self, first: int, stop: int, lanes: np.ndarray | None, chunk: Chunk) -> None:
        row = np.flatnonzero(chunk.blocks == 0)
        if not row.size:
            return
        shape = (len(chunk.blocks), chunk.lanes_per_block)
        real = np.arange(chunk.lanes_per_block) < chunk.threads_per_block
        on = np.broadcast_to(True if lanes is None else lanes, shape)[row[0]] & real
        by_warp = on.reshape(-1, WARP)[:WARPS]
        while len(self.warps) < len(by_warp):
            self.warps.append([])
        for passes, mine in zip(self.warps, by_warp, strict=True):
            if mine.any():
                for line in self._lines[first:stop]:
                    self._note(passes, line, tuple(map(bool, mine)))

    @staticmethod
    def _note(passes: list[LinePass], line: int, lanes: tuple[bool, ...]) -> None:
        last = passes[-1] if passes else None
        if last is not None and last.lanes == lanes and line in (last.line, 0):
            passes[-1] = LinePass(last.line, lanes, last.instructions + 1)
        elif len(passes) < PASSES:
            passes.append(LinePass(line, lanes, 1))
