"""One request to shared memory: which bank serves which lane in which wavefront."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from . import style
from .records import BANKS, LANES, WORD, Request

ROWS = 32


def bank_grid(request: Request, ax: Axes | None = None) -> style.Picture:
    """Draw the 32 banks as columns and the wavefronts as rows; the number in a cell is the lane served.

    Every row costs one pass through shared memory; rows beyond those that the size of the access needs anyway
    are bank conflicts (hatched).
    """
    cells = request.bank_cells
    rows = request.wavefronts
    needed = max(1, request.size * LANES // (WORD * BANKS))
    ax, given = style.begin(ax, BANKS * style.CELL + 1.2, rows * style.CELL + 1.2)
    style.source_line(ax, request.line, request.text)
    for row in range(min(rows, ROWS)):
        for bank in range(BANKS):
            lanes = cells.get((row, bank), ())
            late = row >= needed
            fill = (style.BAD if late else style.GOOD) if lanes else None
            style.cell(
                ax, bank, row, style.lanes_text(lanes), fill, faint=not lanes, wrong=late and bool(lanes)
            )
    ax.set_xlim(-0.1, BANKS + 0.1)
    ax.set_ylim(min(rows, ROWS) + 0.1, -0.1)
    ax.set_aspect("equal")
    ax.set_xticks(np.arange(0, BANKS, 4) + 0.5, [str(bank) for bank in range(0, BANKS, 4)])
    step = max(1, rows // 8)
    ax.set_yticks(
        np.arange(0, min(rows, ROWS), step) + 0.5, [str(r + 1) for r in range(0, min(rows, ROWS), step)]
    )
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_xlabel("bank of shared memory", color=style.INK)
    ax.set_ylabel("wavefront", color=style.INK)

    what = style.quoted(request.array)
    told = f"This {request.kind}{what} takes {style.plural(rows, 'wavefront')}"
    if rows <= needed:
        told += ": no bank has to serve two different words at once."
    else:
        would = f"where {needed} would do" if needed > 1 else "where one would do"
        told += f" {would}: lanes in one column want different words of the same bank."
    return style.finish(ax, told, given)


def sample() -> style.Picture:
    """Threads that read down the columns of a tile of 32 × 34 float32: two lanes to each second bank."""
    return bank_grid(
        Request(
            4 * 34 * np.arange(32), space="shared", array="tile", line=12, text="out[i, j] = tile[tx, ty]"
        )
    )


if __name__ == "__main__":
    style.demo(sample)
