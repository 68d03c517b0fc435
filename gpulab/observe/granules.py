"""Stretches of memory cut into granules, for what an observer remembers of each."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gpulab.simt import Program

Array = np.ndarray

WIDEST = 8  # bytes of a granule: what is written there fits into one integer


def granule_of(nbytes: int, start: int = 0) -> int:
    """The widest granule, in bytes, that accesses of `nbytes` fill whole; `start` is where memory begins."""
    return min(nbytes & -nbytes, start & -start or WIDEST, WIDEST)


def finest(program: Program, space: str) -> int:
    """The granule, in bytes, that loads and stores of a program in `space` seem to need; others may need a
    finer one."""
    sizes = [WIDEST]
    for parts in (i.parts for i in program.instructions if i.parts[0] in ("ld", "st") and space in i.parts):
        vector = next((int(part[1:]) for part in parts if part in ("v2", "v4", "v8")), 1)
        sizes.append(max(vector * int(parts[-1].lstrip("subf")) // 8, 1))
    return min(sizes)


class Granules:
    """`width` granules of `granule` bytes in each of several rows of equal length.

    Subclasses name their arrays, (…, rows × width), with what is in them where nothing is known. Granules
    become finer when an access asks for it, and rows longer.
    """

    arrays: ClassVar[dict[str, int]] = {}

    def __init__(self, granule: int, width: int) -> None:
        self.granule, self.width = granule, width

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
        for name, unknown in self.arrays.items():
            array = getattr(self, name)
            apart = array.reshape(*array.shape[:-1], -1, self.width)
            pad = [(0, 0)] * (apart.ndim - 1) + [(0, width - self.width)]
            wider = np.pad(apart, pad, constant_values=unknown)
            setattr(self, name, wider.reshape(*array.shape[:-1], -1))
        self.width = width
