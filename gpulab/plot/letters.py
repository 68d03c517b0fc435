"""A text whose characters carry numbers from 0 to 1: how sure somebody is of each."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from . import style

ACROSS = 36  # characters of a row


def letters(
    text: str, values: Sequence[float], caption: str, ax: Axes | None = None, *, across: int = ACROSS
) -> style.Picture:
    """Draw each character with a bar below it, as high as its value; low ones, below one half, are hatched.

    `values` are from 0 to 1, one a character. A row has `across` characters. The caption says in one
    sentence what to see. Raises NothingToDraw for an empty text, ValueError for another number of values.
    """
    if not text:
        raise style.NothingToDraw("there is nothing to draw: the text is empty")
    if len(values) != len(text):
        raise ValueError(f"{len(text)} characters have {len(values)} values")
    rows = -(-len(text) // across)
    ax, given = style.begin(ax, 0.2 * across, 0.62 * rows + 0.4)
    for place, (letter, value) in enumerate(zip(text, values, strict=True)):
        row, column = divmod(place, across)
        low = value < 0.5
        ax.bar(
            column,
            0.7 * value,
            0.84,
            bottom=-1.5 * row,
            color=style.BAD if low else style.GOOD,
            hatch=style.HATCH if low else "",
            edgecolor="white",
            linewidth=0.5,
        )
        ax.plot((column - 0.42, column + 0.42), (-1.5 * row,) * 2, color=style.INK, linewidth=0.8)
        shown = {" ": "␣", "\n": "↵"}.get(letter, letter)
        ax.annotate(
            shown, (column, -1.5 * row + 0.78), ha="center", va="bottom", family="monospace",
            fontsize=style.TEXT + 1, color=style.INK,
        )  # fmt: skip
    ax.set_xlim(-0.6, min(across, len(text)) - 0.4)
    ax.set_ylim(-1.5 * (rows - 1) - 0.1, 1.25)
    style.bare(ax)
    return style.finish(ax, caption, given)


def sample() -> style.Picture:
    """Two made-up words."""
    return letters("a guess", [1, 0.9, 0.2, 0.7, 0.95, 1, 0.4], "The second word is hard to guess.")


if __name__ == "__main__":
    style.demo(sample)
