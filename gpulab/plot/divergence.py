"""Which lanes of a warp run while the warp takes one path after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from . import style
from .records import LANES, Pass


def divergence(passes: Sequence[Pass], ax: Axes | None = None) -> style.Picture:
    """Draw lanes as rows and passes as columns, in the order of time; a pass is as wide as its instructions.

    Coloured cells run, hollow ones wait for the others. The same code has the same colour.
    Raises ValueError without a pass.
    """
    if not passes:
        raise ValueError("there is nothing to draw: the warp ran no pass")
    labels = list(dict.fromkeys(p.label for p in passes))
    total = sum(p.instructions for p in passes)
    ax, given = style.begin(ax, 7.0, 4.0)
    x = 0.0
    ran = 0
    for p in passes:
        lanes = np.asarray(p.lanes, bool)
        ran += int(lanes.sum()) * p.instructions
        fill = style.SERIES[labels.index(p.label) % len(style.SERIES)]
        for lane in range(LANES):
            active = bool(lanes[lane])
            style.cell(ax, x, lane, "", fill if active else None, width=p.instructions, faint=True)
        room = p.instructions / total
        ax.text(
            x + p.instructions / 2,
            -0.8,
            p.label,
            ha="center" if room > 0.14 else "left",
            va="bottom",
            rotation=0 if room > 0.14 else 35,
            fontsize=8,
            family="monospace",
            color=style.INK,
        )
        x += p.instructions
    ax.set_xlim(0, total)
    ax.set_ylim(LANES, -0.6)
    ax.set_yticks(np.arange(0, LANES, 8) + 0.5, [str(lane) for lane in range(0, LANES, 8)])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel("instructions issued by the warp", color=style.INK)
    ax.set_ylabel("lane", color=style.INK)
    idle = 1 - ran / (LANES * total)
    told = (
        "Lanes of one warp over time: no lane ever waits."
        if idle == 0
        else f"Lanes of one warp over time: {100 * idle:.0f} % of the lane slots wait while others run."
    )
    return style.finish(ax, told, given)


def sample() -> style.Picture:
    """Even and odd lanes take different branches."""
    every, even = np.ones(LANES, bool), np.arange(LANES) % 2 == 0
    return divergence(
        [
            Pass("i % 2 == 0?", every, 4),
            Pass("a[i] * 2", even, 6),
            Pass("a[i] + 1", ~even, 5),
            Pass("out[i] = …", every, 3),
        ]
    )


if __name__ == "__main__":
    style.demo(sample)
