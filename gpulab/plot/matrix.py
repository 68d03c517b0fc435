"""A two-dimensional array and which lanes touch which of its elements, request after request."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from . import style
from .records import SECTOR, Request

WINDOW = 40  # rows and columns shown at most
ORDER = ("1st", "2nd", "3rd", "4th")

Spot = tuple[int, int]


def matrix(
    requests: Sequence[Request], shape: tuple[int, int], itemsize: int = 4, ax: Axes | None = None
) -> style.Picture:
    """Draw the elements of a row-major array of `shape`; a colour is a request of the warp, a number a lane.

    Up to four requests, in the order in which the warp makes them. Thick outlines are the sectors that the
    first one moves. What lies far from the touched elements is cropped. Raises NothingToDraw without a
    request.
    """
    if not requests:
        raise style.NothingToDraw("there is no request to draw: the kernel touched no memory in this space")
    first = requests[0]
    touched = [_spots(request, shape[1], itemsize) for request in requests[: len(ORDER)]]
    rows, columns = (
        min(WINDOW, size, 6 + max(spot[axis] for spots in touched for spot in spots))
        for axis, size in enumerate(shape)
    )
    ax, given = style.begin(ax, max(6.0, (columns + 4) * style.CELL), (rows + 2) * style.CELL + 0.8)
    style.bare(ax)
    style.source_line(ax, first.line, first.text)

    owner = {spot: turn for turn, spots in reversed(list(enumerate(touched))) for spot in spots}
    for row in range(rows):
        for column in range(columns):
            turn = owner.get((row, column))
            lanes = touched[turn][row, column] if turn is not None else ()
            fill = style.SERIES[turn] if turn is not None else None
            style.cell(ax, column, row, style.lanes_text(lanes), fill, faint=not lanes, size=6.5)
    _outline_sectors(ax, first, shape[1], itemsize, rows, columns)
    if len(touched) > 1:
        for name, spots in zip(ORDER, touched, strict=False):
            _name(ax, name, [(r, c) for r, c in spots if r < rows and c < columns])
    for row in sorted({0, rows - 1}):
        ax.text(-0.3, row + 0.5, str(row), ha="right", va="center", fontsize=8, color=style.INK)
    for column in sorted({0, columns - 1}):
        ax.text(column + 0.5, rows + 0.2, str(column), ha="center", va="top", fontsize=8, color=style.INK)
    if (rows, columns) != tuple(shape):
        ax.text(columns + 0.4, rows + 0.2, "…", va="top", fontsize=10, color=style.INK)
    ax.set_xlim(-1.6, columns + 2)
    ax.set_ylim(rows + 1.1, -1.2)
    ax.set_aspect("equal")
    name = f"'{first.array}'" if first.array else "an array"
    way = _direction(list(touched[0]))
    return style.finish(
        ax,
        f"One warp on {name} of {shape[0]} × {shape[1]}: the lanes of a {first.kind} {way}, so it moves "
        f"{style.plural(len(first.sectors), 'sector')} (outlined).",
        given,
    )


def _spots(request: Request, columns: int, itemsize: int) -> dict[Spot, tuple[int, ...]]:
    """Row and column of each touched element → the lanes that touch it."""
    spots: dict[Spot, tuple[int, ...]] = {}
    for lane in request.lanes:
        start = int(request.offsets[lane]) // itemsize
        for element in range(start, start + max(1, request.size // itemsize)):
            spot = divmod(element, columns)
            spots[spot] = (*spots.get(spot, ()), int(lane))
    return spots


def _outline_sectors(ax: Axes, request: Request, columns: int, itemsize: int, rows: int, shown: int) -> None:
    per_sector = SECTOR // itemsize
    for sector in request.sectors:
        element = (int(sector) * SECTOR - request.base) // itemsize
        row, column = divmod(element, columns)
        if row < rows and column < shown and column + per_sector <= columns:
            width = min(per_sector, shown - column)
            ax.add_patch(
                Rectangle(
                    (column, row), width, 1, facecolor="none", edgecolor=style.INK, linewidth=2, zorder=3
                )
            )


def _name(ax: Axes, text: str, spots: list[Spot]) -> None:
    """Name a request beside its elements: at the right end of a row, otherwise above its first element."""
    if not spots:
        return
    if len({row for row, _ in spots}) == 1:
        row, column = max(spots)
        ax.text(column + 1.3, row + 0.5, text, va="center", fontsize=8, color=style.INK)
    else:
        row, column = min(spots)
        ax.text(column + 0.5, row - 0.15, text, ha="center", va="bottom", fontsize=7, color=style.INK)


def _direction(spots: list[Spot]) -> str:
    if len({row for row, _ in spots}) == 1:
        return "lie side by side in a row"
    if len({column for _, column in spots}) == 1:
        return "lie below each other, a row apart in memory"
    return "are spread over several rows"


def sample() -> style.Picture:
    """Two loads that run down the columns of a row-major matrix."""
    lanes = np.arange(32)
    requests = [
        Request(4 * (lanes * 32 + column), array="a", line=9, text="s += a[i, k]") for column in range(3)
    ]
    return matrix(requests, (32, 32))


if __name__ == "__main__":
    style.demo(sample)
