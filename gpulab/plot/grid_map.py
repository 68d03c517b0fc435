"""Which thread of the grid touches which element of an array, and which elements nobody touches."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes

from . import readings, style
from .records import Coverage

WINDOW = 40  # rows and columns shown at most
WRAP = 32  # elements of a one-dimensional array in a row


def grid_map(coverage: Coverage, ax: Axes | None = None) -> style.Picture:
    """Draw the elements of a one- or two-dimensional array; a colour is a block, a number a thread of it.

    Elements that no thread touched are hatched, elements touched more than once say how often. An array of
    one dimension is wrapped into rows of 32; a large array is cropped.
    """
    block, thread, times = (np.asarray(a) for a in (coverage.block, coverage.thread, coverage.times))
    flat = block.ndim == 1
    shape = (-(-block.size // WRAP), min(WRAP, block.size)) if flat else block.shape
    rows, columns = min(shape[0], WINDOW), min(shape[1], WINDOW)
    ax, given = style.begin(ax, max(4.5, columns * style.CELL + 1.2), max(1.4, rows * style.CELL + 1.0))
    style.bare(ax)
    colours = _colours(block)
    for row in range(rows):
        for column in range(columns):
            spot = (row * WRAP + column,) if flat else (row, column)
            if flat and spot[0] >= block.size:
                continue
            if times[spot] == 0:
                style.cell(ax, column, row, wrong=True)
            else:
                text = f"{times[spot]}×" if times[spot] > 1 else str(thread[spot])
                style.cell(
                    ax, column, row, text, colours[int(block[spot])], wrong=bool(times[spot] > 1), size=6.5
                )
    _say(ax, coverage, times, rows, columns)
    for row in sorted({0, rows - 1}):
        said = str(row * WRAP) if flat else str(row)
        ax.text(-0.3, row + 0.5, said, ha="right", va="center", fontsize=8, color=style.INK)
    for column in sorted({0, columns - 1}):
        ax.text(column + 0.5, -0.2, str(column), ha="center", va="bottom", fontsize=8, color=style.INK)
    cropped = (rows, columns) != tuple(shape)
    if cropped:
        ax.text(columns + 0.3, rows + 0.1, "…", va="top", fontsize=10, color=style.INK)
    ax.set_xlim(-2.2, columns + 0.9)
    ax.set_ylim(rows + (0.8 if cropped else 0.2), -1.1)
    ax.set_aspect("equal")
    return style.finish(ax, _told(coverage, times), given)


def _say(ax: Axes, coverage: Coverage, times: np.ndarray, rows: int, columns: int) -> None:
    """Have each run of neighbours in a row that one block touches say which threads they are."""
    block, thread = np.asarray(coverage.block), np.asarray(coverage.thread)
    flat = block.ndim == 1
    for row in range(rows):
        its = slice(row * WRAP, row * WRAP + columns) if flat else (row, slice(0, columns))
        blocks, threads, often = block[its], thread[its], times[its]
        edges = [0, *(np.flatnonzero((np.diff(blocks) != 0) | (np.diff(often) != 0)) + 1), len(blocks)]
        for start, stop in pairwise(edges):
            first, last = (row * WRAP + start, row * WRAP + stop - 1) if flat else (start, stop - 1)
            which = f"{first}" if first == last else f"{first} to {last}"
            where = f"{coverage.array}[{which}]" if flat else f"{coverage.array}[{row}, {which}]"
            who = f"block {blocks[start]}, threads {threads[start]} to {threads[stop - 1]}"
            if first == last:
                who = f"block {blocks[start]}, thread {threads[start]}"
            if often[start] != 1:
                who = (
                    "no thread"
                    if often[start] == 0
                    else f"touched {often[start]} times; the last is of {who}"
                )
            readings.say(ax, start, row, stop - start, 1, f"{where}\n{who}")


def _colours(block: np.ndarray) -> dict[int, str]:
    """A colour per block; neighbours differ because consecutive blocks take consecutive colours."""
    return {
        int(b): style.SERIES[i % len(style.SERIES)]
        for i, b in enumerate(b for b in np.unique(block) if b >= 0)
    }


def _told(coverage: Coverage, times: np.ndarray) -> str:
    bare, twice = int((times == 0).sum()), int((times > 1).sum())
    size = " × ".join(map(str, times.shape))
    told = f"Threads on '{coverage.array}' of {size}, coloured by block: "
    problems = []
    if bare:
        problems.append(
            f"{style.plural(bare, 'element')} (hatched) {'is' if bare == 1 else 'are'} touched by nobody"
        )
    if twice:
        problems.append(
            f"{style.plural(twice, 'element')} {'is' if twice == 1 else 'are'} touched more than once"
        )
    told += " and ".join(problems) if problems else "every element is touched exactly once"
    if coverage.outside:
        told += (
            f"; {style.plural(coverage.outside, 'thread')} fall{'s' if coverage.outside == 1 else ''} outside"
        )
    return told + "."


def sample() -> style.Picture:
    """A grid of 2 × 3 blocks of 4 × 8 threads over an array of 10 × 24: its last two rows are left out."""
    y, x = np.mgrid[0:10, 0:24]
    block = np.where(y < 8, (y // 4) * 3 + x // 8, -1)
    return grid_map(Coverage(block, (y % 4) * 8 + x % 8))


if __name__ == "__main__":
    style.demo(sample)
