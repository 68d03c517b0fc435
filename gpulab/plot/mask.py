"""Which of the things in a row goes with which in a column: masks, and who depends on whom."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from . import style


def mask(
    marked: Sequence[Sequence[bool]] | np.ndarray,
    row: str,
    column: str,
    ax: Axes | None = None,
    *,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    wrong: Sequence[Sequence[bool]] | np.ndarray | None = None,
) -> style.Picture:
    """Draw a cell for each pair, filled where `marked` is True and hatched where it is `wrong`, too.

    `row` and `column` say what the axes are; `rows` and `columns` name their places, which else have numbers.
    Raises NothingToDraw for no cell.
    """
    there = np.asarray(marked, dtype=bool)
    if there.ndim != 2 or there.size == 0:
        raise style.NothingToDraw("there is nothing to draw: no pair was given")
    bad = np.zeros_like(there) if wrong is None else np.asarray(wrong, dtype=bool) & there
    height, width = there.shape
    ax, given = style.begin(ax, 1.4 + width * style.CELL, 1.5 + height * style.CELL)
    for y in range(height):
        for x in range(width):
            fill = (style.BAD if bad[y, x] else style.GOOD) if there[y, x] else None
            style.cell(ax, x, y, "", fill, faint=not there[y, x], wrong=bool(bad[y, x]))
    ax.set_xlim(-0.06, width + 0.06)
    ax.set_ylim(height + 0.06, -0.06)
    ax.set_aspect("equal")
    ax.set_xticks(np.arange(width) + 0.5, columns if columns is not None else map(str, range(width)))
    ax.set_yticks(np.arange(height) + 0.5, rows if rows is not None else map(str, range(height)))
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_xlabel(column, color=style.INK)
    ax.set_ylabel(row, color=style.INK)
    above = int(np.triu(there, 1).sum())
    said = (
        f"{int(there.sum())} of {there.size} cells are marked, {above} of them to the right of the diagonal"
    )
    if bad.any():
        said += f"; {int(bad.sum())} hatched {'one is' if bad.sum() == 1 else 'ones are'} wrong"
    return style.finish(ax, f"{row[:1].upper()}{row[1:]} by {column}: {said}.", given)


def sample() -> style.Picture:
    """A causal mask with one token that sees ahead."""
    marked = np.tri(8, dtype=bool)
    marked[2, 5] = True
    return mask(marked, "token that looks", "token looked at", wrong=np.triu(np.ones((8, 8)), 1))


if __name__ == "__main__":
    style.demo(sample)
