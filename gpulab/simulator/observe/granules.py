"""Stretches of memory cut into granules, for what an observer remembers of each."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gpulab.simulator.simt import Program

Array = np.ndarray

WIDEST = 8  # bytes of a granule: what is written there fits into one integer
PAGE_BITS = 12
PAGE = 1 << PAGE_BITS  # bytes


def granule_of(nbytes: int) -> int:
    """The widest granule, in bytes, that accesses of `nbytes` fill whole."""
    return min(nbytes & -nbytes, WIDEST)


def finest(program: Program, space: str) -> int:
    """The granule, in bytes, that loads and stores of a program in `space` seem to need; others may need a
    finer one."""
    sizes = [WIDEST]
    for parts in (i.parts for i in program.instructions if i.parts[0] in ("ld", "st") and space in i.parts):
        vector = next((int(part[1:]) for part in parts if part in ("v2", "v4", "v8")), 1)
        sizes.append(max(vector * int(parts[-1].lstrip("subf")) // 8, 1))
    return min(sizes)


class Pages:
    """The pages of `nbytes` bytes from the address `start` on, in the order in which somebody comes by: what
    is kept of a large array has room for these alone."""

    def __init__(self, start: int, nbytes: int) -> None:
        self._origin = start & -PAGE
        self._place = np.full((start + nbytes - self._origin >> PAGE_BITS) + 1, -1, np.int64)
        self.most = len(self._place) * PAGE  # bytes
        self.nbytes = 0  # of the pages where somebody came by

    def offset(self, address: Array) -> Array:
        """Where bytes of the stretch are in those pages."""
        offset = address - self._origin
        page = offset >> PAGE_BITS
        place = self._place.take(page)
        if place.min(initial=0) < 0:
            new = np.unique(page[place < 0])
            self._place[new] = self.nbytes + np.arange(len(new)) * PAGE
            self.nbytes += len(new) * PAGE
            place = self._place.take(page)
        return place + (offset & PAGE - 1)


class Granules:
    """`width` granules of `granule` bytes in each of several rows of equal length, or in those `pages` of one
    long row where somebody came by.

    Subclasses name their arrays, (…, rows × width), which are 0 where nothing is known. Granules become
    finer when an access asks for it, and rows longer.
    """

    arrays: ClassVar[tuple[str, ...]] = ()

    def __init__(self, granule: int, width: int, pages: Pages | None = None) -> None:
        self.granule, self.width, self.pages = granule, width, pages

    def places(self, address: Array, size: int) -> Array:
        """The first granule of each access of `size` bytes in `pages`."""
        assert self.pages is not None
        offset = self.pages.offset(address)
        self.fit(self.pages.nbytes, size)
        return offset // self.granule

    def fit(self, nbytes: int, size: int) -> None:
        """Make room for `nbytes` bytes a row, and granules as fine as accesses of `size` bytes need."""
        if (fine := granule_of(size)) < self.granule:
            self._refine(self.granule // fine)
        if nbytes > self.width * self.granule:
            self._widen(max(-(-nbytes // self.granule), 2 * self.width))

    def _refine(self, parts: int) -> None:
        self.granule //= parts
        self.width *= parts
        for name in self.arrays:
            setattr(self, name, np.repeat(getattr(self, name), parts, axis=-1))

    def _widen(self, width: int) -> None:
        for name in self.arrays:
            array = getattr(self, name)
            apart = array.reshape(*array.shape[:-1], -1, self.width)
            wider = np.zeros((*apart.shape[:-1], width), array.dtype)
            wider[..., : self.width] = apart
            setattr(self, name, wider.reshape(*array.shape[:-1], -1))
        self.width = width
