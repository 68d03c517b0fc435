"""Several counts for the same kernels, side by side: what a step saves and what it costs instead."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from . import readings, style


def panels(
    counts: Mapping[str, Mapping[str, float]], caption: str, *, most: float | None = None
) -> style.Picture:
    """Draw one panel per unit (keys of `counts`, for example ``barriers per warp``), one bar per kernel.

    All panels list the kernels of the first in its order, each on a scale of its own from 0, or, for parts of
    one whole, all on a scale from 0 to `most`. The caption says in one sentence what to see. Raises
    NothingToDraw without a count, or where a panel lacks a kernel.
    """
    kernels = list(next(iter(counts.values()), {}))
    if not kernels:
        raise style.NothingToDraw("there is nothing to compare: no count was given")
    for unit, of_kernels in counts.items():
        if missing := [name for name in kernels if of_kernels.get(name) is None]:
            raise style.NothingToDraw(f"there is no count of {unit} for {' and '.join(missing)}")
    size = 1.2 + 2.4 * len(counts), 1.1 + 0.36 * len(kernels)
    axes = style.axes(*size, 1, len(counts), squeeze=False)[0]
    for ax, (unit, of_kernels) in zip(axes, counts.items(), strict=True):
        highest = most or max(max(of_kernels[name] for name in kernels), 1e-30)
        places = _places(of_kernels[name] for name in kernels)
        for row, name in enumerate(kernels):
            value = of_kernels[name]
            style.cell(ax, 0, row - 0.3, "", style.GOOD, width=value, height=0.6)
            readings.say(ax, 0, row - 0.45, 2 * highest, 0.9, f"{name}\n{style.number(value)} {unit}")
            ax.annotate(
                f"{value:,.{places}f}", (value, row), xytext=(4, 0), textcoords="offset points", va="center",
                fontsize=8, color=style.INK,
            )  # fmt: skip
        ax.set_xlim(0, 1.5 * highest)
        ax.set_ylim(len(kernels) - 0.5, -0.5)
        ax.set_xticks([])
        ax.set_yticks(range(len(kernels)), kernels if ax is axes[0] else [""] * len(kernels))
        ax.tick_params(axis="y", length=0)
        ax.spines["bottom"].set_visible(False)
        ax.set_xlabel(unit, color=style.INK)
    return style.finish(axes[0], caption, False)


def _places(values: Iterable[float]) -> int:
    """Decimal places, the same for all numbers of a panel: none if they are whole, else as many as show three
    digits of the largest and one of the smallest."""
    values = list(values)
    scales = [math.floor(math.log10(value)) for value in values if value > 0]
    if not scales or all(value == int(value) for value in values):
        return 0
    return max(0, 2 - max(scales), -min(scales))


def sample() -> style.Picture:
    """Three versions of a sum."""
    counts = {
        "warp instructions": {"tree": 67584, "shuffles": 81280, "one launch": 32384},
        "barriers per warp": {"tree": 4, "shuffles": 1, "one launch": 1},
    }
    return panels(counts, "Shuffles save barriers and cost instructions.")


if __name__ == "__main__":
    style.demo(sample)
