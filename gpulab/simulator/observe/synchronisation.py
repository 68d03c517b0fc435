"""Barriers that not all threads of a block reach: some have returned before, or wait at another line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from gpulab.simulator.ptx import Immediate, Instruction, Location
from gpulab.simulator.simt import Chunk, Observer, Program
from gpulab.simulator.simt.errors import Index, index_of, source_text
from gpulab.simulator.simt.opcodes import is_aligned


@dataclass(frozen=True)
class MissedBarrier:
    """A barrier at which some threads of a block were missing: they had returned."""

    kernel: str
    location: Location | None
    block: Index
    came: int
    threads: int

    def __str__(self) -> str:
        line = self.location.line if self.location else 0
        lines = [f"Barrier not reached by all in kernel {self.kernel}, line {line}"]
        if text := source_text(self.location):
            lines.append(f"    {line} │ {text}")
        lines.append(
            f"{self.came} of {self.threads} threads of block {self.block} came; the others had returned."
        )
        lines.append("Usual cure: guard the work and not the barrier, so that every thread reaches it.")
        return "\n".join(lines)


@dataclass(frozen=True)
class MixedBarriers:
    """One barrier to which warps of a block came on two lines; `warps` are two that did so."""

    kernel: str
    location: Location | None
    elsewhere: Location | None
    block: Index
    warps: tuple[int, int]

    def __str__(self) -> str:
        places = (self.location, self.elsewhere)
        numbers = [place.line if place else 0 for place in places]
        rows = [f"    {place.line:4} │ {text}" for place in places if place and (text := source_text(place))]
        return "\n".join(
            [
                f"Two barriers taken for one in kernel {self.kernel}, lines {numbers[0]} and {numbers[1]}",
                *rows,
                f"Warp {self.warps[0]} of block {self.block} waits at line {numbers[0]}, while warp "
                f"{self.warps[1]} waits at another one, line {numbers[1]}.",
                "GPUs count who comes and let both pass, but CUDA promises nothing for such a kernel.",
                "Usual cure: move the barrier out of the branch, so that all threads reach the same one.",
            ]
        )


def _is_for_roles(instruction: Instruction) -> bool:
    """Whether threads come to a barrier from different places, and some when others have done their part: one
    with a number of its own that is not aligned, as Triton has between warps with roles."""
    number = instruction.operands[:1]
    if is_aligned(instruction):
        return False
    return bool(number) and not (isinstance(number[0], Immediate) and int(number[0].value) == 0)


class Synchronisation(Observer):
    """Finds barriers after an early return, and barriers that warps reach on different lines.

    Read `findings` after the launch: each source line occurs once.
    """

    def __init__(self) -> None:
        self.findings: list[MissedBarrier | MixedBarriers] = []
        self._seen: set[object] = set()
        self._mixed: dict[int, np.ndarray] = {}  # instruction → who comes to its barrier, that way or another

    def start(self, program: Program, grid: Index, block: Index) -> None:
        self._program, self._grid = program, grid

    def mixed(self, parts: Mapping[int, np.ndarray], chunk: Chunk) -> None:
        whole = np.logical_or.reduce(list(parts.values()))
        self._mixed = {index: whole for index in parts}
        aligned = {index: lanes for index, lanes in parts.items() if is_aligned(self._instruction(index))}
        for (first, some), (second, others) in combinations(sorted(aligned.items()), 2):
            both = some.any(axis=1) & others.any(axis=1)
            places = self._instruction(first).location, self._instruction(second).location
            if not both.any() or places in self._seen:
                continue
            self._seen.add(places)
            row = int(both.argmax())
            warps = int(some[row].argmax()) // 32, int(others[row].argmax()) // 32
            block = index_of(int(chunk.blocks[row]), self._grid)
            self.findings.append(MixedBarriers(self._program.display_name, *places, block, warps))

    def _instruction(self, index: int) -> Instruction:
        return self._program.instructions[index]

    def barrier(self, index: int, lanes: np.ndarray | None, chunk: Chunk) -> None:
        if lanes is None:
            return
        shape = (chunk.blocks.size, chunk.lanes_per_block)
        came = np.broadcast_to(self._mixed.pop(index, lanes), shape).sum(axis=1)
        short = (came > 0) & (came < chunk.threads_per_block)
        instruction = self._instruction(index)
        if len(instruction.operands) > 1 + ("red" in instruction.parts) * 2:
            return  # it says itself how many threads it is for
        if _is_for_roles(instruction):
            return
        key = instruction.location or index
        if not short.any() or key in self._seen:
            return
        self._seen.add(key)
        row = int(short.argmax())
        block = int(chunk.blocks[row])
        self.findings.append(
            MissedBarrier(
                self._program.display_name,
                instruction.location,
                index_of(block, self._grid),
                int(came[row]),
                chunk.threads_per_block,
            )
        )
