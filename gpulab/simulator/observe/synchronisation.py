"""Barriers that not all threads of a block reach, because some have returned before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpulab.simulator.ptx import Immediate, Instruction, Location
from gpulab.simulator.simt import Chunk, Observer, Program
from gpulab.simulator.simt.errors import Index, index_of, source_text


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


def _is_for_roles(instruction: Instruction) -> bool:
    """Whether threads come to a barrier from different places, and some when others have done their part: one
    with a number of its own that is not aligned, as Triton has between warps with roles."""
    parts, number = instruction.parts, instruction.operands[:1]
    if parts[0] == "bar" or "aligned" in parts:
        return False
    return bool(number) and not (isinstance(number[0], Immediate) and int(number[0].value) == 0)


class Synchronisation(Observer):
    """Finds barriers after an early return; read `findings` after the launch, each source line once."""

    def __init__(self) -> None:
        self.findings: list[MissedBarrier] = []
        self._seen: set[object] = set()

    def start(self, program: Program, grid: Index, block: Index) -> None:
        self._program, self._grid = program, grid

    def barrier(self, index: int, lanes: np.ndarray | None, chunk: Chunk) -> None:
        if lanes is None:
            return
        shape = (chunk.blocks.size, chunk.lanes_per_block)
        came = np.broadcast_to(lanes, shape).sum(axis=1)
        short = (came > 0) & (came < chunk.threads_per_block)
        instruction = self._program.instructions[index]
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
