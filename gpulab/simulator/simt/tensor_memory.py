"""Tensor Memory of Blackwell: 128 lanes × 512 columns of 32 bits for each block, as a record.

It is allocated in columns. An address holds the lane in its upper and the column in its lower 16 bits. A warp
reaches the 32 lanes of its place in its warpgroup and no others (PTX ISA, "Tensor Memory").
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from .memory import FRESH
from .warps import WARP

Array = np.ndarray

LANES, COLUMNS = 128, 512
FEWEST = 32  # columns of an allocation, which is a power of two
LANE_BIT = 16  # of an address: the lowest bit of the lane …
COLUMN = (1 << LANE_BIT) - 1  # … and below the column


@dataclass
class TensorMemory:
    """The Tensor Memory of a chunk's blocks.

    `words` (B, 128, 512) are its contents, uint32. `owner` (B, 512) says for each column at which column its
    allocation begins, -1 for a free one. `closed` (B,) are the blocks that may allocate no more.
    """

    words: Array
    owner: Array
    closed: Array


def fresh(blocks: int, garbage: np.random.Generator | None) -> TensorMemory:
    """The Tensor Memory of a chunk of blocks, unwritten: see `Frame` for `garbage`."""
    shape = (blocks, LANES, COLUMNS)
    if garbage is not None:
        words = garbage.integers(0, 1 << 32, shape, np.uint32)
    else:
        words = np.full(shape, FRESH * 0x01010101, np.uint32)
    return TensorMemory(words, np.full((blocks, COLUMNS), -1, np.int16), np.zeros(blocks, bool))


def allocate(memory: TensorMemory, row: int, count: int) -> int | None:
    """The first column of `count` new ones of the block in `row`, at a multiple of `count`; None if there is
    no such place."""
    for first in range(0, COLUMNS, count):
        if (memory.owner[row, first : first + count] < 0).all():
            memory.owner[row, first : first + count] = first
            return first
    return None


# ---- which thread of a warp holds what -----------------------------------------------------------


class Shape(NamedTuple):
    """A shape of ``tcgen05.ld`` and ``.st``, which moves `columns` columns of Tensor Memory at once.

    `lane` and `column` (32 threads, registers) say which place each register of a thread holds.
    """

    columns: int
    lane: Array
    column: Array


def _shape(columns: int, lane: Array, column: Array) -> Shape:
    return Shape(columns, *np.broadcast_arrays(lane, column))


_THREAD = np.arange(WARP)[:, None]
_PAIR = np.arange(2)
_QUAD = np.arange(4)
SPLIT = "16x32bx2"  # threads 16 to 31 reach the same lanes, as many columns further as the opcode says
SHAPES = {
    SPLIT: _shape(1, _THREAD % 16, np.zeros((1, 1), np.int64)),
    "32x32b": _shape(1, _THREAD, np.zeros((1, 1), np.int64)),
    "16x64b": _shape(2, _THREAD // 4 + _THREAD % 2 * 8, _THREAD // 2 % 2),
    "16x128b": _shape(4, _THREAD // 4 + 8 * _PAIR, _THREAD % 4),
    "16x256b": _shape(8, _THREAD // 4 + _QUAD // 2 * 8, _THREAD % 4 * 2 + _QUAD % 2),
}


@cache
def repeated(name: str, times: int, split: int = 0) -> Shape:
    """The shape of that name, `times` in a row along the columns. `split` is that of `SPLIT`, in columns."""
    one = SHAPES[name]
    lane = np.tile(one.lane, (1, times))
    first = np.repeat(np.arange(times) * one.columns, one.column.shape[1])
    column = np.tile(one.column, (1, times)) + first + split * (_THREAD // 16)
    return Shape(one.columns * times + split, lane, column)


def in_pairs(shape: Shape, split: int = 0) -> Shape:
    """The shape with ``pack::16b``: each of its columns is two of Tensor Memory, of which a register has the
    lower halves. Two places in a row are those of one register."""
    further = split * (_THREAD // 16)
    first = 2 * (shape.column - further) + further
    column = np.stack([first, first + 1], axis=-1).reshape(WARP, -1)
    return Shape(2 * (shape.columns - split) + split, np.repeat(shape.lane, 2, axis=1), column)
