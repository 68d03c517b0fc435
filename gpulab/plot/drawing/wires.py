"""Lines from what stands above to what stands below: lanes to sectors, threads to banks, pages to blocks."""

from __future__ import annotations

from collections.abc import Sequence

from . import marks
from .grids import CODES
from .part import Part, measure


def wires(
    upper: int,
    targets: Sequence[Sequence[int]],
    lower: str,
    width: float = 520,
    depth: float = 64,
    above: Sequence[str] = (),
    below: Sequence[str] = (),
    upper_cells: str = "",
) -> Part:
    """`upper` dots (cells, if `upper_cells` has letters) above, a cell below for each letter of `lower`,
    and a line from
    each above to its targets below. `above` and `below` are words at them."""
    head = 18.0 if above and not upper_cells else 0.0
    room, span = width / upper, width / len(lower)
    size = min(room - 4, 64) if upper_cells else min(room * 0.62, 13)
    tall = 26 if upper_cells else size
    start = head + tall
    svg = ""
    for i, each in enumerate(targets):
        for target in each:
            svg += marks.line(
                [((i + 0.5) * room, start), ((target + 0.5) * span, start + depth)], "read-line"
            )
    for i in range(upper):
        x = (i + 0.5) * room
        if upper_cells:
            svg += marks.rect(x - size / 2, head, size, tall, CODES[upper_cells[i]])
        else:
            svg += marks.circle(x, head + size / 2, size / 2, "dot")
        if i < len(above):
            y = head + 18 if upper_cells else 12
            svg += marks.text(x, y, above[i], "middle small")
    cell = min(span - 3, 90)
    for j, code in enumerate(lower):
        x = (j + 0.5) * span
        svg += marks.rect(x - cell / 2, start + depth, cell, 26, CODES[code] or "off")
        if j < len(below):
            inside = cell >= 8.0 * len(below[j]) + 4
            svg += marks.text(x, start + depth + (18 if inside else 42), below[j], "middle small")
    return Part(width, start + depth + (46 if below and cell < 30 else 28), svg)


def levels(
    rows: Sequence[str],
    links: Sequence[Sequence[tuple[int, int]]],
    texts: Sequence[Sequence[str]] = (),
    left: Sequence[str] = (),
    width: float = 420,
    depth: float = 26,
) -> Part:
    """Rows of cells below one another, as letters of `CODES`, and lines (above, below) from each row to
    the next.

    A blank leaves a place empty. `texts` are the words in the cells, `left` the names of the rows.
    """
    named = max((measure(name, 13) for name in left), default=-8.0) + 8
    size = min(width / max(map(len, rows)) - 6, 44)
    svg, y, tall = "", 0.0, 24
    for i, codes in enumerate(rows):
        room = width / len(codes)
        if i:
            for a, b in links[i - 1]:
                x1 = named + (a + 0.5) * width / len(rows[i - 1])
                svg += marks.arrow([(x1, y - depth + 1), (named + (b + 0.5) * room, y - 2)])
        if i < len(left):
            svg += marks.text(named - 8, y + 17, left[i], "end small")
        for j, code in enumerate(codes):
            x = named + (j + 0.5) * room
            svg += marks.rect(x - size / 2, y, size, tall, CODES[code]) if CODES[code] else ""
            if i < len(texts) and j < len(texts[i]):
                svg += marks.text(x, y + 17, texts[i][j], "middle small")
        y += tall + depth
    return Part(named + width, y - depth, svg)
