"""Shared memory that threads write and an engine reads: the write must be fenced for the engine's proxy.

Tensor cores that read operands by themselves (``wgmma``) and bulk copies reach shared memory by another path,
the async proxy, than loads and stores of threads. What a thread has written is there for them only after a
``fence.proxy.async``, of the thread itself or, behind a barrier, of one that starts the engine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpulab.simulator.ptx import Instruction, Location
from gpulab.simulator.simt import Access, Chunk, Observer, Program
from gpulab.simulator.simt.errors import Index, source_text, thread_words

Array = np.ndarray

WORD = 4  # bytes: of several threads that write within a word, the last one is remembered


@dataclass(frozen=True)
class UnfencedWrite:
    """Shared memory that a thread wrote at `written` was read at `read` through the async proxy, unfenced."""

    kernel: str
    written: Location | None
    read: Location | None
    block: Index
    thread: Index

    def __str__(self) -> str:
        first, second = (place.line if place else 0 for place in (self.written, self.read))
        width = max(len(source_text(self.written)), len(source_text(self.read)))
        return "\n".join(
            [
                f"Write not fenced for the async proxy in kernel {self.kernel}",
                f"    {first:4} │ {source_text(self.written):<{width}}   writes shared memory",
                f"    {second:4} │ {source_text(self.read):<{width}}   reads it through the async proxy",
                f"{thread_words(self.thread, self.block)} wrote, and no fence came between: "
                "what is read may be old.",
                "Usual cure: fence.proxy.async after the write, then a barrier, and only then the read.",
            ]
        )


def is_async(instruction: Instruction) -> bool:
    """Whether an engine does what the instruction asks for, through the async proxy."""
    parts = instruction.parts
    return parts[:2] == ("wgmma", "mma_async") or (parts[0] == "cp" and "bulk" in parts)


def fences(instruction: Instruction) -> bool:
    """Whether an instruction makes writes of threads to shared memory visible to the async proxy."""
    parts = instruction.parts
    return parts[:3] == ("fence", "proxy", "async") and "global" not in parts[3:]


@dataclass
class _Shared:
    """Shared memory of a chunk's blocks by words, (B, words): when each was written, by which lane and which
    instruction; and when each lane (B, T) fenced last."""

    when: Array
    lane: Array
    by: Array
    fenced: Array


class UnfencedWrites(Observer):
    """Finds them; read `findings` after the launch, each pair of source lines once."""

    def __init__(self) -> None:
        self.findings: list[UnfencedWrite] = []
        self._seen: set[object] = set()
        self._now = 0
        self._made = False  # whether the next accesses of wgmma are of a product that is made

    def start(self, program: Program, grid: Index, block: Index) -> None:
        self._program, self._grid, self._block = program, grid, block
        self._looks = any(map(is_async, program.instructions))
        self._chunks: dict[int, tuple[Chunk, _Shared]] = {}

    def fence(self, index: int, lanes: Array | None, chunk: Chunk) -> None:
        if self._looks and fences(self._program.instructions[index]):
            self._now += 1
            shared = self._of(chunk, 0)
            shared.fenced[_full(lanes, chunk)] = self._now

    def product(self, index: int, warpgroups: Array, made: bool, chunk: Chunk) -> None:
        self._made = made

    def access(self, access: Access) -> None:
        if not self._looks or access.space != "shared":
            return
        if access.instruction.parts[0] == "wgmma" and self._made:
            return  # what it reads now it may have read when it was asked for
        self._now += 1
        row, lane = np.nonzero(_full(access.lanes, access.chunk))
        shape = access.chunk.blocks.size, access.chunk.lanes_per_block
        address = np.broadcast_to(access.address, shape)[row, lane]
        first, last = address // WORD, (address + access.size - 1) // WORD
        shared = self._of(access.chunk, int(last.max(initial=0)) + 1)
        engine = is_async(access.instruction)
        for i in range(int((last - first).max(initial=-1)) + 1):
            word = np.minimum(first + i, last)
            if not engine and access.kind != "load":
                shared.when[row, word] = self._now
                shared.lane[row, word] = lane
                shared.by[row, word] = access.index
            elif engine and access.kind == "load":
                self._read(access, shared, row, lane, word)

    def _read(self, access: Access, shared: _Shared, row: Array, lane: Array, word: Array) -> None:
        when, writer = shared.when[row, word], shared.lane[row, word]
        readers = np.zeros(len(shared.fenced), np.int64)
        np.maximum.at(readers, row, shared.fenced[row, lane])
        bad = when > np.maximum(shared.fenced[row, writer], readers[row])
        if not bad.any():
            return
        at = int(bad.argmax())
        instructions = self._program.instructions
        written, read = (instructions[i].location for i in (int(shared.by[row[at], word[at]]), access.index))
        if (written, read) in self._seen:
            return
        self._seen.add((written, read))
        (x, y, _), (gx, gy, _) = self._block, self._grid
        block, thread = int(access.chunk.blocks[row[at]]), int(writer[at])
        self.findings.append(
            UnfencedWrite(
                self._program.display_name,
                written,
                read,
                (block % gx, block // gx % gy, block // (gx * gy)),
                (thread % x, thread // x % y, thread // (x * y)),
            )
        )

    def _of(self, chunk: Chunk, words: int) -> _Shared:
        """What is known of a chunk's shared memory, for so many words at least."""
        if id(chunk) not in self._chunks:
            blocks = chunk.blocks.size
            empty = np.zeros((blocks, 0), np.int64)
            lanes = np.zeros((blocks, chunk.lanes_per_block), np.int64)
            self._chunks[id(chunk)] = chunk, _Shared(empty, empty, empty, lanes)
        shared = self._chunks[id(chunk)][1]
        if (more := words - shared.when.shape[1]) > 0:
            more = max(more, shared.when.shape[1])
            for name in ("when", "lane", "by"):
                setattr(shared, name, np.pad(getattr(shared, name), ((0, 0), (0, more))))
        return shared


def _full(lanes: Array | None, chunk: Chunk) -> Array:
    shape = chunk.blocks.size, chunk.lanes_per_block
    return np.broadcast_to(True if lanes is None else lanes, shape)
