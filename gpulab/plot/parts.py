"""Matrices of a layer, to scale, and which rank has which part of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from matplotlib.axes import Axes

from . import style

Cut = Literal["columns", "rows", "whole", "terms"]
SIGN = 0.16  # room for a sign between two matrices, as a share of the highest matrix
BEHIND = 0.035  # how far a term of a sum stands out behind the one before it


def parts(
    chain: Sequence[str | tuple[str, tuple[int, int], Cut]],
    ranks: int,
    caption: str,
    ax: Axes | None = None,
) -> style.Picture:
    """Draw a chain of matrices side by side; each part has the colour and the number of the rank that has it.

    A matrix is (name, (rows, columns), cut): each rank has some "columns" or some "rows", all have the
    "whole", or each has one of the "terms" of a sum, which are drawn behind one another. A string is a sign
    between two matrices. The caption says in one sentence what to see. Raises NothingToDraw without a matrix.
    """
    shapes = [entry[1] for entry in chain if not isinstance(entry, str)]
    if not shapes:
        raise style.NothingToDraw("there is nothing to draw: no matrix was given")
    ax, given = style.begin(ax, 8.4, 3.0)
    style.bare(ax)
    high = max(rows for rows, _ in shapes)
    x = 0.0
    for entry in chain:
        if isinstance(entry, str):
            ax.text(
                x + SIGN * high / 2, high / 2, entry, ha="center", va="center", color=style.INK, fontsize=14
            )
            x += SIGN * high
            continue
        name, (rows, columns), cut = entry
        top, back = (high - rows) / 2, (ranks - 1) * BEHIND * high if cut == "terms" else 0.0
        _draw(ax, x, top, rows, columns, cut, ranks, BEHIND * high)
        said = f"{name}\n{rows:,} × {columns:,}"
        ax.text(
            x + (columns + back) / 2, top - back - 0.03 * high, said, ha="center", va="bottom",
            color=style.INK, fontsize=style.TEXT,
        )  # fmt: skip
        x += columns + back
    ax.set_xlim(-0.02 * high, x + 0.02 * high)
    ax.set_ylim(1.02 * high, -0.3 * high)
    ax.set_aspect("equal")
    return style.finish(ax, caption, given)


def _draw(ax: Axes, x: float, y: float, rows: int, columns: int, cut: Cut, ranks: int, behind: float) -> None:
    """One matrix with its upper left corner at (x, y)."""
    for rank in reversed(range(ranks)):
        colour = style.SERIES[rank % len(style.SERIES)]
        if cut == "columns":
            width = columns / ranks
            style.cell(ax, x + rank * width, y, str(rank), colour, width=width, height=rows, size=style.TEXT)
        elif cut == "rows":
            height = rows / ranks
            style.cell(
                ax, x, y + rank * height, str(rank), colour, width=columns, height=height, size=style.TEXT
            )
        elif cut == "terms":
            shift = rank * behind
            text = "+" if rank == 0 else ""
            style.cell(ax, x + shift, y - shift, text, colour, width=columns, height=rows, size=style.TEXT)
    if cut == "whole":
        style.cell(ax, x, y, "all", width=columns, height=rows, size=style.TEXT)


def sample() -> style.Picture:
    """An MLP whose first matrix is cut by columns and whose second is cut by rows."""
    return parts(
        [
            ("X", (64, 128), "whole"),
            "·",
            ("A", (128, 512), "columns"),
            "→",
            ("gelu(X A)", (64, 512), "columns"),
            "·",
            ("B", (512, 128), "rows"),
            "→",
            ("Y", (64, 128), "terms"),
        ],
        4,
        "The columns that a rank computes are those that its rows of B need; Y is a sum over ranks.",
    )


if __name__ == "__main__":
    style.demo(sample)
