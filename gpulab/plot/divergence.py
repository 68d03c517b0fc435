"""Which lanes of a warp run while the warp takes one path after the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, groupby

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba

from . import style
from .records import LANES, Pass

SHOWN = 96  # passes at most


def divergence(passes: Sequence[Pass], ax: Axes | None = None) -> style.Picture:
    """Draw lanes as rows and passes as columns, in the order of time; a pass is as wide as its instructions.

    Coloured cells run, hollow ones wait for the others. The same code has the same colour. After 96 passes
    the picture is cut. Raises ValueError without a pass.
    """
    if not passes:
        raise ValueError("there is nothing to draw: the warp ran no pass")
    cut = len(passes) > SHOWN
    passes = passes[:SHOWN]
    colours = dict(zip(dict.fromkeys(map(_label, passes)), cycle(style.SERIES), strict=False))
    total = sum(p.instructions for p in passes)
    ax, given = style.begin(ax, 7.0, 4.0)
    lanes = np.array([p.lanes for p in passes], bool).T  # (32, passes)
    lengths = np.array([p.instructions for p in passes])
    fills = np.array([[to_rgba(colours[p.label]) for p in passes]] * LANES)
    fills[~lanes] = 0  # hollow
    edges = np.concatenate([[0], np.cumsum(lengths)])
    ax.pcolormesh(edges, np.arange(LANES + 1), fills, edgecolors=style.FAINT, linewidth=0.7)
    _name_code(ax, passes, total)
    ax.set_xlim(0, total)
    ax.set_ylim(LANES, -0.6)
    ax.set_yticks(np.arange(0, LANES, 8) + 0.5, [str(lane) for lane in range(0, LANES, 8)])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel("instructions issued by the warp", color=style.INK)
    ax.set_ylabel("lane", color=style.INK)
    waiting = 1 - float((lanes * lengths).sum()) / (LANES * total)
    told = "no lane ever waits"
    if waiting:
        told = f"{100 * waiting:.0f} % of the lane slots wait while others run"
    part = f" (its first {SHOWN} passes)" if cut else ""
    return style.finish(ax, f"Lanes of one warp over time{part}: {told}.", given)


def _label(p: Pass) -> str:
    return p.label


def _name_code(ax: Axes, passes: Sequence[Pass], total: int) -> None:
    """Write above the passes what ran, once for passes of the same code that follow each other."""
    start = 0
    for label, group in groupby(passes, key=_label):
        length = sum(p.instructions for p in group)
        wide = length > 0.14 * total
        ax.text(
            start + length / 2, -0.8, label, ha="center" if wide else "left", va="bottom",
            rotation=0 if wide else 35, fontsize=8, family="monospace", color=style.INK,
        )  # fmt: skip
        start += length


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
