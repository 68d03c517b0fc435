"""Which tiles of a matrix are visited, and which of them hold pairs that do not count."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from . import style


def tile_map(
    counted: Sequence[Sequence[float]] | np.ndarray,
    row: str,
    column: str,
    ax: Axes | None = None,
    *,
    title: str = "",
) -> style.Picture:
    """Draw a cell for each tile: filled where all of its pairs count, half filled where some do, empty else.

    `counted` is the share of pairs that count, 0 to 1, (tiles of rows, tiles of columns); `row` and `column`
    say what the axes are. Raises NothingToDraw for no tile.
    """
    share = np.asarray(counted, dtype=float)
    if share.ndim != 2 or share.size == 0:
        raise style.NothingToDraw("there is nothing to draw: no tile was given")
    height, width = share.shape
    ax, given = style.begin(ax, max(3.6, 1.4 + width * style.CELL), 1.9 + height * style.CELL)
    for y in range(height):
        for x in range(width):
            some = 0 < share[y, x] < 1
            style.cell(ax, x, y, "", None, faint=True)
            if share[y, x] > 0:
                style.cell(ax, x, y, "½" if some else "", style.SERIES[1] if some else style.GOOD)
    ax.set_xlim(-0.06, width + 0.06)
    ax.set_ylim(height + 0.06, -0.06)
    ax.set_aspect("equal")
    ax.set_xticks(np.arange(width) + 0.5, map(str, range(width)))
    ax.set_yticks(np.arange(height) + 0.5, map(str, range(height)))
    ax.tick_params(length=0, colors=style.INK)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_xlabel(column, color=style.INK)
    ax.set_ylabel(row, color=style.INK)
    if title:
        ax.set_title(title, fontsize=style.TEXT, color=style.INK)
    visited = int((share > 0).sum())
    partly = int(((share > 0) & (share < 1)).sum())
    said = f"{visited} of {share.size} tiles are visited; ½ marks the {partly} that need a mask."
    return style.finish(ax, said, given)


def sample() -> style.Picture:
    i, j = np.mgrid[:8, :8]
    return tile_map(np.where(i > j, 1.0, np.where(i == j, 0.5, 0.0)), "tile of queries", "tile of keys")


if __name__ == "__main__":
    style.demo(sample)
