"""Steps through a kernel as a picture of a table, for where no page can be shown."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from . import style
from .records import Steps

ROW = 0.2  # inches
LETTER = 0.078  # inches: a letter of the fixed-width font at this size
GAP = 2  # letters between columns
SHOWN = 120  # rows at most, of all tables


def step_table(tables: Sequence[Steps], ax: Axes | None = None) -> style.Picture:
    """Draw tables below each other; what a row changed is strong. After 120 rows the picture is cut.

    Raises NothingToDraw without a row.
    """
    if not any(table.rows for table in tables):
        raise style.NothingToDraw("there is nothing to draw: no line was executed")
    widths = [_widths(table) for table in tables]
    letters = max(sum(w) + GAP * len(w) for w in widths)
    lines = sum(len(table.rows) + 3 for table in tables)
    ax, given = style.begin(ax, max(4.0, letters * LETTER + 0.4), 0.6 + ROW * min(lines, SHOWN + 4))
    style.bare(ax)
    row, drawn = 0, 0
    for table, width in zip(tables, widths, strict=True):
        _write(ax, 0, row, table.title, colour=style.DEEP, weight="bold")
        _write_row(ax, row + 1, [(name, "") for name in table.header], table.left, width, style.INK)
        row += 2
        for cells in table.rows[: SHOWN - drawn]:
            _write_row(ax, row, cells, table.left, width)
            row += 1
        drawn += min(len(table.rows), SHOWN - drawn)
        row += 1
    total = sum(len(table.rows) for table in tables)
    ax.set_xlim(0, letters)
    ax.set_ylim(row, -0.8)
    cut = f", of which the first {drawn} are shown" if total > drawn else ""
    told = f"{style.plural(total, 'step')} of {', '.join(table.title for table in tables)}{cut}: "
    return style.finish(ax, told + "a row is a source line, and what it changed is bold and blue.", given)


def _widths(table: Steps) -> list[int]:
    return [
        max(len(text) for text in (name, *(row[i][0] for row in table.rows)))
        for i, name in enumerate(table.header)
    ]


def _write_row(
    ax: Axes,
    y: float,
    cells: Sequence[tuple[str, str]],
    left: frozenset[int],
    widths: Sequence[int],
    colour: str = style.INK,
) -> None:
    start = 0
    for i, ((text, kind), width) in enumerate(zip(cells, widths, strict=True)):
        strong = kind == "strong"
        at = start if i in left else start + width
        _write(
            ax, at, y, text, "left" if i in left else "right", style.DEEP if strong else colour,
            "bold" if strong else "normal",
        )  # fmt: skip
        start += width + GAP


def _write(
    ax: Axes, x: float, y: float, text: str, align: str = "left", colour: str = "", weight: str = "normal"
) -> None:
    ax.text(
        x, y, text.replace("$", r"\$"), ha=align, va="center", family="monospace", fontsize=8, color=colour,
        weight=weight,
    )  # fmt: skip


def sample() -> style.Picture:
    """One thread that sums up two elements."""
    lines = [("7", "i = cuda.grid(1)"), ("9", "total += a[i]"), ("9", "total += a[i]")]
    values = [(("3", "strong"), ("–", "")), (("3", ""), ("1.5", "strong")), (("3", ""), ("4.0", "strong"))]
    rows = [
        [(line, ""), (text, "code"), ("ffffffff", ""), *cells]
        for (line, text), cells in zip(lines, values, strict=True)
    ]
    header = ("line", "source", "lanes", "i", "total")
    return step_table([Steps("sum · block 0 · warp 0", header, rows, frozenset({1, 2}))])


if __name__ == "__main__":
    style.demo(sample)
