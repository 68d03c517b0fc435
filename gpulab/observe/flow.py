"""Which instruction of a program can run after which, in one thread and with no barrier between them."""

from __future__ import annotations

from bisect import bisect_right

from gpulab.simt import Program
from gpulab.simt.program import successors


class Flow:
    """The ways through a program, for observers that tell earlier from later."""

    def __init__(self, program: Program) -> None:
        self._segments = program.segments
        self._starts = [segment.first for segment in program.segments]
        self._after: dict[int, set[int]] = {}

    def leads(self, first: int, second: int) -> bool:
        """Whether a thread that has run instruction `first` may come to `second` before a barrier of the
        block."""
        start, goal = (bisect_right(self._starts, index) - 1 for index in (first, second))
        return (start == goal and first < second) or goal in self._following(start)

    def _following(self, start: int) -> set[int]:
        if start not in self._after:
            reached, edge = set[int](), {start}
            while edge:
                edge = {
                    target
                    for number in edge
                    for target in successors(self._segments[number])
                    if self._segments[target].kind != "barrier"
                } - reached
                reached |= edge
            self._after[start] = reached
        return self._after[start]
