"""A job that is stopped and started again: how far each attempt came, and where the next one continued."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from matplotlib.axes import Axes

from . import style

Point = tuple[float, float]


def attempts(
    runs: Sequence[Sequence[Point]], x: str, y: str, caption: str, ax: Axes | None = None
) -> style.Picture:
    """Draw the points (time, progress) of each run from its start, a numbered dot, to its end.

    Each run but the last was stopped, which a cross marks; a dashed line leads to where the next one starts.
    `x` and `y` name the axes, with units. The caption says in one sentence what to see. Raises NothingToDraw
    without a point.
    """
    if not runs or not all(runs):
        raise style.NothingToDraw("there is nothing to draw: an attempt has no point")
    ax, given = style.begin(ax, 7.2, 3.6)
    for number, run in enumerate(runs, 1):
        ax.plot(*zip(*run, strict=True), color=style.DEEP, linewidth=2)
        ax.plot(*run[0], "o", color=style.DEEP, markersize=6)
        ax.annotate(
            str(number), run[0], xytext=(0, -7), textcoords="offset points", ha="center", va="top",
            fontsize=style.TEXT, color=style.INK,
        )  # fmt: skip
    for stopped, following in pairwise(runs):
        ax.plot(*zip(stopped[-1], following[0], strict=True), color=style.INK, linewidth=1, linestyle="--")
        ax.plot(*stopped[-1], "x", color=style.ALARM, markersize=8, markeredgewidth=2)
    ax.margins(x=0.03, y=0.14)
    ax.set_xlabel(x, color=style.INK)
    ax.set_ylabel(y, color=style.INK)
    return style.finish(ax, caption, given)


def sample() -> style.Picture:
    """Three made-up attempts; the second dies before it gets anywhere."""
    runs: list[list[Point]] = [[(0, 0), (1, 0), (4, 70)], [(5, 60), (5.5, 60)], [(6, 60), (7, 60), (10, 120)]]
    return attempts(runs, "seconds", "step", "Two stops: each attempt goes on from step 60.")


if __name__ == "__main__":
    style.demo(sample)
