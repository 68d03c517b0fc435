"""Lines from what stands above to what stands below: lanes to sectors, threads to banks, pages to blocks."""

from __future__ import annotations

from collections.abc import Sequence

from . import marks
from .grids import CODES
from .part import Part


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
    """`upper` dots (cells, if `upper_cells` has letters) above, a cell below for each letter of `lower`, and a line from
    each above to its targets below. `above` and `below` are words at them."""
    head = 18.0 if above else 0.0
    room, span = width / upper, width / len(lower)
    size = min(room - 2, 26) if upper_cells else min(room * 0.62, 13)
    start = head + size
    svg = ""
    for i, each in enumerate(targets):
        for target in each:
            svg += marks.line([((i + 0.5) * room, start), ((target + 0.5) * span, start + depth)], "read-line")
    for i in range(upper):
        x = (i + 0.5) * room
        if upper_cells:
            svg += marks.rect(x - size / 2, head, size, size, CODES[upper_cells[i]])
        else:
            svg += marks.circle(x, head + size / 2, size / 2, "dot")
        if i < len(above):
            y = head + size / 2 + 5 if upper_cells and size >= 22 else 12
            svg += marks.text(x, y, above[i], "middle small")
    cell = min(span - 3, 90)
    for j, code in enumerate(lower):
        x = (j + 0.5) * span
        svg += marks.rect(x - cell / 2, start + depth, cell, 26, CODES[code] or "off")
        if j < len(below):
            inside = cell >= 8.0 * len(below[j]) + 4
            svg += marks.text(x, start + depth + (18 if inside else 42), below[j], "middle small")
    return Part(width, start + depth + (46 if below and cell < 30 else 28), svg)
