"""Which instruction of a program can run after which, and where a barrier between two of them may stand."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from functools import cached_property

from gpulab.simulator.simt import Program
from gpulab.simulator.simt.program import Branch, successors


class Flow:
    """The ways through a program, for observers that tell earlier from later."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._segments = program.segments
        self._starts = [segment.first for segment in program.segments]
        self._after: dict[int, set[int]] = {}

    def leads(self, first: int, second: int) -> bool:
        """Whether a thread that has run instruction `first` may come to `second` before a barrier of the
        block."""
        start, goal = self._segment(first), self._segment(second)
        return (start == goal and first < second) or goal in self._following(start)

    def place_of_barrier(self, first: int, second: int, is_divergent: Callable[[int], bool]) -> str:
        """Where a barrier that all threads reach puts `first` before `second`: `` `after` `` the first or
        `` `before` `` the second, whichever is in fewer loops; empty if only some threads come by both.

        `is_divergent` tells of a branch whether the threads of a block decide differently there.
        """
        safe = [
            (self._depth(index), self._copies(index), word)
            for word, index in (("after", first), ("before", second))
            if self._is_for_all(index, is_divergent)
        ]
        return min(safe)[2] if safe else ""  # in a tie `after`

    def is_polled(self, index: int) -> bool:
        """Whether an instruction is in a loop that does nothing but look: no store, no barrier."""
        here = self._segment(index)
        if here not in self._following(here):
            return False
        loop = [n for n in self._following(here) if here in self._following(n)]
        return not any(
            i.parts[0] in ("st", "bar", "barrier")
            for n in loop
            for i in self._program.instructions[self._segments[n].first : self._segments[n].stop]
        )

    def is_repeated(self, first: int, second: int) -> bool:
        """Whether `second` comes after `first` in another round of a loop, or in another copy of its body."""
        low, high = sorted((first, second))
        return self.leads(high, low) or self._segment(low) != self._segment(high)

    def _segment(self, index: int) -> int:
        return bisect_right(self._starts, index) - 1

    def _following(self, start: int) -> set[int]:
        if start not in self._after:
            reached, edge = set[int](), {start}
            while edge:
                edge = {
                    target
                    for number in edge
                    for target in successors(self._segments[number].end)
                    if self._segments[target].kind != "barrier"
                } - reached
                reached |= edge
            self._after[start] = reached
        return self._after[start]

    # ---- where all threads come by -----------------------------------------------------------------------

    def _depth(self, index: int) -> int:
        """In how many loops an instruction is; a loop is the text from its head to the jump back to it."""
        here = self._segment(index)
        heads = {
            target
            for number, segment in enumerate(self._segments)
            for target in successors(segment.end)
            if target <= here <= number
        }
        return len(heads)

    def _copies(self, index: int) -> int:
        """How many accesses of its kind come from its source line: an unrolled loop has as many as rounds."""
        instructions = self._program.instructions
        here = instructions[index]
        return sum(i.location == here.location and i.parts[:2] == here.parts[:2] for i in instructions)

    def _is_for_all(self, index: int, is_divergent: Callable[[int], bool]) -> bool:
        """Whether no branch on which the threads differ decides if a thread comes to an instruction."""
        if self._program.instructions[index].guard is not None:
            return False
        todo, seen = [self._segment(index)], set[int]()
        while todo:
            for number in self._deciders[todo.pop()] - seen:
                if is_divergent(self._segments[number].stop - 1):
                    return False
                seen.add(number)
                todo.append(number)
        return True

    @cached_property
    def _deciders(self) -> list[set[int]]:
        """For each segment those whose branch decides whether a thread comes there: one of its ways always
        leads there, and another may not."""
        always = self._post_dominators
        found: list[set[int]] = [set() for _ in self._segments]
        for number, segment in enumerate(self._segments):
            ways = successors(segment.end)
            if len(ways) < 2 and not isinstance(segment.end, Branch):
                continue
            for target in ways:
                for there in range(len(self._segments)):
                    if always[target] >> there & 1 and not (always[number] >> there & 1 and there != number):
                        found[there].add(number)
        return found

    @cached_property
    def _post_dominators(self) -> list[int]:
        """For each segment, as bits, those through which every way from it to the end leads, and itself."""
        every = (1 << len(self._segments)) - 1
        found = [every] * len(self._segments)
        changed = True
        while changed:
            changed = False
            for number in range(len(self._segments) - 1, -1, -1):
                segment = self._segments[number]
                ways = successors(segment.end)
                common = every if ways else 0
                for target in ways:
                    common &= found[target]
                if isinstance(segment.end, Branch) and len(ways) < 2:
                    common = 0  # some lanes may leave here
                common |= 1 << number
                if common != found[number]:
                    found[number], changed = common, True
        return found
