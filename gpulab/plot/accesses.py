"""One request of a warp in memory: the sectors that it moves and the bytes of them that it wanted."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from . import style
from .records import LINE, SECTOR, WORD, Request

ROWS = 32  # lines of 128 bytes shown at most


def accesses(request: Request, ax: Axes | None = None) -> style.Picture:
    """Draw one warp's request. A row is a line of 128 bytes, its four groups are the sectors of 32 bytes.

    A sector that is touched is moved whole: coloured cells are what a lane asked for (the number is the
    lane), hollow ones travel unused. Sectors that are not touched stay faint.
    """
    unit = min(request.size, WORD)
    per_line = LINE // unit
    touched = request.sectors
    lines = np.unique(touched // (LINE // SECTOR))
    shown = lines[:ROWS]
    cells = _cells(request, unit)
    width = max(8.0, 32 * style.CELL)
    ax, given = style.begin(ax, width, 1.1 + style.CELL * 1.05 * len(shown))
    style.bare(ax)
    style.source_line(ax, request.line, request.text)

    order = {int(sector): i for i, sector in enumerate(touched)}
    scale = LINE / WORD / per_line  # cells are as wide as a word whatever the size of an element
    for row, line in enumerate(shown):
        for column in range(per_line):
            address = int(line) * LINE + column * unit
            sector = address // SECTOR
            x = column * scale + 0.35 * (column * unit // SECTOR)  # a gap between sectors
            lanes = cells.get(address, ())
            fill = style.SERIES[order[sector] % 2] if lanes else None
            text = style.lanes_text(lanes) if scale >= 0.5 else ""
            style.cell(ax, x, row, text, fill, width=scale, height=0.9, faint=sector not in order)
        offset = int(line) * LINE - request.base
        ax.text(-0.4, row + 0.45, f"{offset:+,} B", ha="right", va="center", fontsize=8, color=style.INK)
    if len(lines) > len(shown):
        rest = len(lines) - len(shown)
        ax.text(0, len(shown) + 0.6, f"… and {style.plural(rest, 'line')} more", fontsize=8, color=style.INK)
    ax.set_xlim(-4.5, 32 + 3 * 0.35 + 0.2)
    ax.set_ylim(len(shown) + (0.9 if len(lines) > len(shown) else 0.1), -0.2)

    moved = SECTOR * len(touched)
    lanes_word = (
        "its 32 lanes" if len(request.lanes) == 32 else style.plural(len(request.lanes), "active lane")
    )
    what = style.quoted(request.array)
    return style.finish(
        ax,
        f"This {request.kind}{what} moves {style.plural(len(touched), 'sector')} of 32 bytes ({moved:,} B) "
        f"for the {request.useful_bytes:,} B that {lanes_word} asked for; hollow cells travel unused.",
        given,
    )


def _cells(request: Request, unit: int) -> dict[int, tuple[int, ...]]:
    """Address of each cell of `unit` bytes → the lanes that want it."""
    cells: dict[int, tuple[int, ...]] = {}
    for lane in request.lanes:
        first = int(np.asarray(request.addresses)[lane])
        for address in range(first, first + request.size, unit):
            cells[address] = (*cells.get(address, ()), int(lane))
    return cells


def sample() -> style.Picture:
    """A load with stride 2: half of every sector is wasted."""
    return accesses(Request(4096 + 8 * np.arange(32), base=4096, array="a", line=9, text="out[i] = a[2 * i]"))


if __name__ == "__main__":
    style.demo(sample)
