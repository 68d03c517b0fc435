"""The same kernel in several languages side by side: what became of each source line."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from . import style
from .records import Listing

ROW = 0.185  # inches
CHARACTER = 0.072  # inches, of the monospaced letters below
SIZE = 8
GAP = 4  # characters between columns


def listings(columns: Sequence[Listing], ax: Axes | None = None) -> style.Picture:
    """Draw listings from left to right; lines that come from the same source line have the same colour.

    Lines of source line 0 belong to none and have no colour. Raises NothingToDraw without a line.
    """
    if not any(column.lines for column in columns):
        raise style.NothingToDraw("there is nothing to draw: no listing has a line")
    rows = max(len(column.lines) for column in columns)
    widths = [max([len(column.title), *(len(text) for text, _ in column.lines)]) + GAP for column in columns]
    ax, given = style.begin(ax, CHARACTER * sum(widths) + 0.3, ROW * (rows + 2) + 0.5)
    style.bare(ax)
    ax.set_xlim(0, sum(widths))
    ax.set_ylim(rows + 0.2, -1.6)
    origins = list(dict.fromkeys(line for column in columns for _, line in column.lines if line))
    colours = {line: style.SERIES[i % len(style.SERIES)] for i, line in enumerate(sorted(origins))}
    left = 0
    for column, width in zip(columns, widths, strict=True):
        ax.text(left, -0.9, column.title, color=style.INK, fontsize=SIZE + 1, weight="bold", va="center")
        for row, (text, line) in enumerate(column.lines):
            if line:
                style.cell(ax, left, row - 0.42, fill=colours[line], width=0.6, height=0.84)
            words = text.expandtabs(2)
            ax.text(left + 1.2, row, words, color=style.INK, fontsize=SIZE, family="monospace", va="center")
        left += width
    told = ", ".join(f"{len(column.lines)} lines of {column.title}" for column in columns)
    return style.finish(ax, f"{told}: bars of one colour come from the same source line.", given)


def sample() -> style.Picture:
    """One line of C++ in three forms."""
    return listings(
        [
            Listing("CUDA C++", (("int i = threadIdx.x;", 1), ("y[i] = a * x[i];", 2))),
            Listing(
                "PTX",
                (
                    ("mov.u32 %r1, %tid.x;", 1),
                    ("ld.global.f32 %f2, [%rd4];", 2),
                    ("mul.f32 %f3, %f1, %f2;", 2),
                    ("st.global.f32 [%rd5], %f3;", 2),
                    ("ret;", 0),
                ),
            ),
            Listing("SASS", (("S2R R4, SR_TID.X", 1), ("LDG.E R2, [R2.64]", 2), ("EXIT", 0))),
        ]
    )


if __name__ == "__main__":
    style.demo(sample)
