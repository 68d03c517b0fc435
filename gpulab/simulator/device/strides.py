"""Strides of arrays without gaps, for the arrays of all front ends."""

from __future__ import annotations

from collections.abc import Sequence


def contiguous_strides(shape: Sequence[int], itemsize: int, order: str = "C") -> tuple[int, ...]:
    """The strides of an array whose elements lie next to each other, as NumPy gives them.

    `shape` is the number of elements along each axis, `itemsize` the bytes of one element; strides are in
    bytes, one for each axis. `order` is ``"C"`` (rows first) or ``"F"`` (columns first).

    >>> contiguous_strides((2, 3, 4), 4)
    (48, 16, 4)
    """
    strides, step = [], itemsize
    for size in shape if order == "F" else reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(strides if order == "F" else reversed(strides))
