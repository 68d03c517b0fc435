"""Writes to shared memory that bulk copies and tensor cores may not see: they read through the async proxy.

What threads write reaches it by a ``fence.proxy.async``. It is either the writer's own, after the write, or
that of a thread of its block that has met the writer since then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpulab.simulator.ptx import Location
from gpulab.simulator.simt import Access, Chunk, Observer, Program, TensorProduct, Transfer
from gpulab.simulator.simt.errors import Index, index_of, source_text, thread_words

from .bulk_ends import End, ends
from .counters import bulk_kind

Array = np.ndarray

WORD = 4  # bytes that are kept together
NEVER = -1


@dataclass(frozen=True)
class UnseenWrite:
    """A thread wrote to shared memory at `written`, and what reads it at `location` may not see that."""

    kernel: str
    written: Location | None
    location: Location | None
    block: Index
    thread: Index
    reader: str

    def __str__(self) -> str:
        first, second = (place.line if place else 0 for place in (self.written, self.location))
        width = max(len(source_text(self.written)), len(source_text(self.location)))
        return "\n".join(
            [
                f"Write that {self.reader} may not see in kernel {self.kernel}",
                f"    {first:4} │ {source_text(self.written):<{width}}   writes to shared memory",
                f"    {second:4} │ {source_text(self.location):<{width}}   reads it through the async proxy",
                f"{thread_words(self.thread, self.block)} wrote, and no fence followed.",
                "Usual cure: every thread that wrote calls fence.proxy.async after its writes (in CUDA C++ "
                "cuda::ptx::fence_proxy_async(cuda::ptx::space_shared)), then a barrier, and only then the "
                "reader begins.",
            ]
        )


class _Words:
    """For each word of shared memory of a chunk's blocks: the last thread to write it, when, and how."""

    def __init__(self, rows: int, nbytes: int) -> None:
        shape = (rows, -(-nbytes // WORD))
        self.when = np.full(shape, NEVER, np.int64)
        self.lane = np.zeros(shape, np.int32)
        self.index = np.zeros(shape, np.int32)


class Proxies(Observer):
    """Finds such writes; read `findings` after the launch, each pair of source lines once."""

    def __init__(self) -> None:
        self.findings: list[UnseenWrite] = []
        self._seen: set[object] = set()
        self._words: dict[int, _Words] = {}  # by the first block of a chunk
        self._made = False  # whether what wgmma reads next is of a product that is made

    def start(self, program: Program, grid: Index, block: Index) -> None:
        self._program, self._grid, self._block = program, grid, block
        self._lanes = (math.prod(block) + 31) // 32 * 32
        self._active = any(
            bulk_kind(i) in ("store", "reduction", "exchange")
            or i.parts[0] == "wgmma"
            or i.parts[:2] == ("tcgen05", "mma")
            for i in program.instructions
        )
        count = math.prod(grid) * self._lanes if self._active else 0
        self._now = 0
        self._fenced = np.full(count, NEVER, np.int64)  # when each thread fenced last …
        self._met = self._fenced.copy()  # … and met others
        self._covered = np.full(
            count // self._lanes, NEVER, np.int64
        )  # by block: what a fence of others covers

    def _threads(self, lanes: Array | None, chunk: Chunk) -> Array:
        shape = (chunk.blocks.size, chunk.lanes_per_block)
        row, lane = np.nonzero(np.broadcast_to(True if lanes is None else lanes, shape))
        return chunk.blocks[row] * self._lanes + lane

    def _meet(self, lanes: Array | None, chunk: Chunk) -> None:
        if self._active:
            self._now += 1
            self._met[self._threads(lanes, chunk)] = self._now

    def barrier(self, index: int, lanes: Array | None, chunk: Chunk) -> None:
        self._meet(lanes, chunk)

    def warp_sync(self, index: int, lanes: Array | None, masks: Array | None, chunk: Chunk) -> None:
        self._meet(lanes, chunk)

    def passed(
        self,
        index: int,
        address: Array,
        phase: Array,
        lanes: Array,
        chunk: Chunk,
        rows: Array | None = None,
    ) -> None:
        self._meet(lanes, chunk)

    def fence(self, index: int, lanes: Array | None, chunk: Chunk) -> None:
        parts = self._program.instructions[index].parts
        if not self._active or "proxy" not in parts or not any(part.startswith("async") for part in parts):
            return
        self._now += 1
        threads = self._threads(lanes, chunk)
        self._fenced[threads] = self._now
        np.maximum.at(self._covered, threads // self._lanes, self._met[threads])

    def product(self, index: int, warpgroups: Array, made: bool, chunk: Chunk) -> None:
        self._made = made

    def access(self, access: Access) -> None:
        if not self._active or access.space != "shared" or access.instruction.parts[0] == "mbarrier":
            return
        if access.instruction.parts[0] == "wgmma" and self._made:
            return  # what a product reads when it is made it could have read when it was asked for
        chunk = access.chunk
        shape = (chunk.blocks.size, chunk.lanes_per_block)
        row, lane = np.nonzero(np.broadcast_to(True if access.lanes is None else access.lanes, shape))
        address = np.broadcast_to(access.address, shape)[row, lane]
        if access.kind == "load":
            if access.instruction.parts[0] == "wgmma":
                self._read(access, address[:, None], row, "wgmma")
            return
        self._now += 1
        words = self._of(chunk, int(address.max()) + access.size)
        first = address // WORD
        for i in range(max(access.size // WORD, 1)):
            words.when[row, first + i] = self._now
            words.lane[row, first + i] = lane
            words.index[row, first + i] = access.index

    def bulk(self, transfer: Transfer) -> None:
        if not self._active:
            return
        if transfer.origin is not None and transfer.origin_rows is not None:
            self._read(transfer, transfer.origin, transfer.origin_rows, "a bulk copy")
        elif transfer.kind in ("store", "reduction") and transfer.offset is not None:
            assert transfer.rows is not None
            self._read(transfer, transfer.offset, transfer.rows, "a bulk copy")
        for end in ends(transfer):
            if end.space == "shared" and end.writes and not end.reads:
                self._replace(transfer, end)

    def _replace(self, transfer: Transfer, end: End) -> None:
        """What a thread wrote is no longer there: the copy came through the async proxy itself."""
        words = self._of(transfer.chunk, int(end.address.max(initial=0)) + transfer.size)
        for i in range(max(transfer.size // WORD, 1)):
            words.when[end.owner, end.address // WORD + i] = NEVER

    def tensor_product(self, product: TensorProduct) -> None:
        for row, offsets in product.reads:
            self._read(product, offsets[None, :], np.array([row]), "tcgen05.mma")

    def _read(self, what: Access | Transfer | TensorProduct, offset: Array, rows: Array, reader: str) -> None:
        """Something reads elements at `offset` (n, E) of the shared memory of the blocks in `rows` (n,)."""
        chunk = what.chunk
        words = self._of(chunk, int(offset.max()) + what.size)
        place = offset // WORD + np.arange(max(what.size // WORD, 1))[:, None, None]
        owner = np.broadcast_to(rows[:, None], place.shape)
        when, lane = words.when[owner, place], words.lane[owner, place]
        block = chunk.blocks[owner]
        unseen = (when != NEVER) & (self._fenced[block * self._lanes + lane] < when)
        unseen &= self._covered[block] < when
        if unseen.any():
            at = tuple(np.argwhere(unseen)[0])
            self._report(what, int(words.index[owner, place][at]), int(block[at]), int(lane[at]), reader)

    def _of(self, chunk: Chunk, nbytes: int) -> _Words:
        first = int(chunk.blocks[0])
        words = self._words.get(first)
        if words is None or words.when.shape[1] * WORD < nbytes:
            old, words = words, _Words(chunk.blocks.size, max(nbytes, 4096, 2 * self._program.shared_bytes))
            if old is not None:
                for name in ("when", "lane", "index"):
                    getattr(words, name)[:, : old.when.shape[1]] = getattr(old, name)
            self._words[first] = words
        return words

    def _report(
        self, what: Access | Transfer | TensorProduct, written: int, block: int, lane: int, reader: str
    ) -> None:
        start, here = (self._program.instructions[i].location for i in (written, what.index))
        if (start or written, here or what.index) in self._seen:
            return
        self._seen.add((start or written, here or what.index))
        where = index_of(block, self._grid)
        thread = index_of(lane, self._block)
        name = self._program.display_name
        self.findings.append(UnseenWrite(name, start, here, where, thread, reader))
