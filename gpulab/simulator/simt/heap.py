"""The heap from which kernels take memory with ``malloc`` and ``new``, and to which they give it back."""

from __future__ import annotations

import numpy as np

from .memory import HEAP_PIECE, HeapMemory, Memory

Array = np.ndarray

# The book has a number for each piece of the heap, positive where the piece belongs to a block. The first
# piece of a block has the block's number of pieces.
INSIDE = 1 << 30
EMPTY = 0
GIVEN_BACK = -1  # the first piece of what was a block


class Heap:
    """The heap in `memory`, which has `nbytes` if it must be made first. One piece behind each block stays
    empty, so that a thread that runs over is found out.

    Memory that was given back is used again only when nothing else is left. Until then a thread that still
    uses it is found out as well. All that the heap knows is in device memory, so that a launch can be taken
    back.
    """

    def __init__(self, memory: Memory, nbytes: int) -> None:
        if memory.heap is None:
            count = max(nbytes // HEAP_PIECE, 1)
            blocks = memory.allocate(count * HEAP_PIECE, "the heap of malloc() in kernels")
            book = memory.allocate(4 * (count + 1), "the book of the heap", fill=None)
            blocks.book = book.data.view(np.int32)[1:]
            memory.heap = HeapMemory(blocks, book)
        self._memory = memory
        self._start, book = memory.heap.blocks.address, memory.heap.book
        self._fresh = book.data.view(np.int32)[:1]  # the first piece that no block has ever had
        self._pieces = book.data.view(np.int32)[1:]

    def take(self, nbytes: int) -> int:
        """The address of a new block of `nbytes`, 0 if there is no room for it."""
        count, start = max(1, -(-nbytes // HEAP_PIECE)), int(self._fresh[0])
        if start + count > len(self._pieces):
            gap = self._gap(count)
            if gap is None:
                return 0
            start = gap
        self._write()
        self._pieces[start : start + count] = INSIDE
        self._pieces[start] = count
        self._fresh[0] = max(self._fresh[0], start + count + 1)
        return self._start + start * HEAP_PIECE

    def give_back(self, address: int) -> str:
        """End the block at `address`. Returns what is wrong with it, in words; empty if nothing is."""
        start, rest = divmod(address - self._start, HEAP_PIECE)
        found = int(self._pieces[start]) if 0 <= start < len(self._pieces) else EMPTY
        if found == EMPTY:
            return "malloc never gave it that address"
        if found == GIVEN_BACK:
            return "that block was freed before"
        if rest or found == INSIDE:
            return "that address lies inside a block, not at its start"
        self._write()
        self._pieces[start : start + found] = EMPTY
        self._pieces[start] = GIVEN_BACK
        return ""

    def left(self) -> tuple[int, int]:
        """How many blocks nobody has given back, and their bytes in whole pieces."""
        sizes = self._pieces[(self._pieces > 0) & (self._pieces < INSIDE)]
        return len(sizes), int(sizes.sum()) * HEAP_PIECE

    def _write(self) -> None:
        assert self._memory.heap is not None
        self._memory.writes(self._memory.heap.book)

    def _gap(self, count: int) -> int | None:
        """Where so many pieces are empty, with one before them and one behind them."""
        taken = np.concatenate([[True], self._pieces > 0, [True]]).astype(np.int8)
        edges = np.flatnonzero(np.diff(taken))
        for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            first = start + (start > 0)
            if first + count < stop + (stop == len(self._pieces)):
                return int(first)
        return None
