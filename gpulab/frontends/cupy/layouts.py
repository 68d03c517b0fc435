"""Shapes and strides: which dimensions of several arrays can be walked as one."""

from __future__ import annotations

from collections.abc import Sequence

Shape = tuple[int, ...]


def joined(shape: Shape, strides: Sequence[Shape]) -> tuple[Shape, list[Shape]]:
    """The shape with as few dimensions as possible in which arrays of these strides are walked alike.

    Dimensions of size 1 vanish. Two neighbours become one where each array's outer stride is the inner one
    times the inner size.
    """
    kept: list[tuple[int, list[int]]] = []  # size, one stride per array; outermost first
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        steps = [s[axis] for s in strides]
        if kept and all(outer == step * size for outer, step in zip(kept[-1][1], steps, strict=True)):
            kept[-1] = (kept[-1][0] * size, steps)
        else:
            kept.append((size, steps))
    if not kept and shape:  # a single element: one dimension, so that it can be walked
        kept = [(1, [s[-1] for s in strides])]
    return tuple(size for size, _ in kept), [
        tuple(steps[i] for _, steps in kept) for i in range(len(strides))
    ]
