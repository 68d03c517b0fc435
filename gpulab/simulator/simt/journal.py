"""What memory held before it was written to: kept page by page, so that a launch can be taken back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .memory import Allocation, Memory

Array = np.ndarray
Contents = dict[Allocation, dict[int, Array]]  # of pages, by their number in the allocation

PAGE = 4096  # bytes that are kept together


class Difference(NamedTuple):
    """A page, `offset` bytes into its allocation, that held the bytes `earlier` and holds those of `now`."""

    allocation: Allocation
    offset: int
    earlier: Array
    now: Array


class Journal:
    """Keeps what pages of `memory` held when it was made, of those that are written to later.

    It hears of every write while it is `memory.journal`. Memory that is allocated later or adopted from the
    host is not its concern; of memory that the host writes to without telling anybody every page is kept.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._modules, self._heap = dict(memory.modules), memory.heap
        self._before: Contents = {}
        # What was there: a pool may give the same allocation to another array, with other `data`.
        self._known = {a: (a.data, a.written) for a in memory.allocations}
        self._kept: dict[Allocation, Array] = {}
        for allocation in memory.allocations:
            if allocation.mapped:
                self.keep(allocation)

    def keep(self, allocation: Allocation, offset: Array | None = None) -> None:
        """Somebody is about to write to an allocation, at these bytes (None: anywhere)."""
        if allocation.adopted or not self._is_known(allocation) or not allocation.nbytes:
            return
        if allocation not in self._kept:
            self._kept[allocation] = np.zeros(-(-allocation.nbytes // PAGE), bool)
            self._before[allocation] = {}
        kept = self._kept[allocation]
        pages = np.flatnonzero(~kept) if offset is None else offset // PAGE
        if offset is not None:
            if kept.take(pages).all():
                return
            pages = np.unique(pages[~kept[pages]])
        kept[pages] = True
        self._before[allocation].update({n: _page(allocation, n).copy() for n in pages.tolist()})

    def contents(self) -> Contents:
        """What the kept pages hold now."""
        there = filter(self._is_known, self._before)
        return {a: {n: _page(a, n).copy() for n in self._before[a]} for a in there}

    def differences(self, contents: Contents) -> list[Difference]:
        """Each page that holds something else now than in what `contents` gave some time ago."""
        found = []
        for allocation in filter(self._is_known, self._before):
            earlier = self._before[allocation] | contents.get(allocation, {})
            for number, page in earlier.items():
                if not np.array_equal(page, _page(allocation, number)):
                    now = _page(allocation, number)
                    found.append(Difference(allocation, number * PAGE, page, now))
        return sorted(found, key=lambda difference: (difference.allocation.address, difference.offset))

    def restore(self, contents: Contents | None = None) -> None:
        """Let memory be as it was in the beginning, or when `contents` were taken.

        A module that has been loaded since then starts afresh, and so does a heap.
        """
        self._memory.modules, self._memory.heap = dict(self._modules), self._heap
        for allocation in filter(self._is_known, self._before):
            later = (contents or {}).get(allocation, {})
            allocation.written = self._known[allocation][1] or bool(later)
            for number, page in (self._before[allocation] | later).items():
                _page(allocation, number)[:] = page

    def _is_known(self, allocation: Allocation) -> bool:
        return allocation in self._known and self._known[allocation][0] is allocation.data


def _page(allocation: Allocation, number: int) -> Array:
    return allocation.data[number * PAGE : (number + 1) * PAGE]
