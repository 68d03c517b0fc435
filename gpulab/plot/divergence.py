"""Which lanes of a warp run while the warp takes one path after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import cycle, groupby

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba

from . import style
from .records import LANES, Pass

SHOWN = 96  # passes at most
CHARACTER = 0.0115  # the width of a letter of a name, as a part of the axis


def divergence(
    passes: Sequence[Pass], ax: Axes | None = None, *, kernel: str = "", label: str = ""
) -> style.Picture:
    """Draw lanes as rows and passes as columns, in the order of time; a pass is as wide as its instructions.

    Coloured cells run, hollow ones wait for the others. The same code has the same colour. The axis ends at a
    round number, so that two versions of a kernel mostly share it. After 96 passes the picture is cut. With
    `label` only passes with that label are coloured, and the others are faint.
    Raises NothingToDraw without a pass.
    """
    if not passes:
        raise style.NothingToDraw("there is nothing to draw: the warp ran no pass")
    cut = len(passes) > SHOWN
    passes = passes[:SHOWN]
    colours = dict(zip(dict.fromkeys(map(_label, passes)), cycle(style.SERIES), strict=False))
    total = sum(p.instructions for p in passes)
    ax, given = style.begin(ax, 7.0, 4.0)
    lanes = np.array([p.lanes for p in passes], bool).T  # (32, passes)
    lengths = np.array([p.instructions for p in passes])
    fills = np.array([[to_rgba(colours[p.label]) for p in passes]] * LANES)
    fills[~lanes] = 0  # hollow
    if label:
        fills[:, [p.label != label for p in passes], 3] *= 0.2
    edges = np.concatenate([[0], np.cumsum(lengths)])
    ax.pcolormesh(edges, np.arange(LANES + 1), fills, edgecolors=style.FAINT, linewidth=0.7)
    end = _round_up(total)
    if not label:
        _name_code(ax, passes, end)
    ax.set_xlim(0, end)
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
    of = f" of {kernel}" if kernel else ""
    strong = f"; {label} is strong" if label else ""
    return style.finish(ax, f"Lanes of one warp{of} over time{part}: {told}{strong}.", given)


def _label(p: Pass) -> str:
    return p.label


def _round_up(count: int) -> float:
    """The next of 1, 2, 5, 10, 20, 50 …"""
    digit = 10 ** math.floor(math.log10(count))
    return float(next(step * digit for step in (1, 2, 5, 10) if step * digit >= count))


def _name_code(ax: Axes, passes: Sequence[Pass], end: float) -> None:
    """Write above the passes what ran, once for passes of the same code that follow each other.

    A name for which there is no room is left out.
    """
    start = 0
    free = 0.0  # where the last name ends
    for label, group in groupby(passes, key=_label):
        length = sum(p.instructions for p in group)
        middle, half = start + length / 2, 0.5 * CHARACTER * end * len(label)
        left = max(middle - half, 0.0)
        if left >= free:
            ax.text(
                left, -0.8, label, ha="left", va="bottom", fontsize=8, family="monospace", color=style.INK
            )
            free = left + 2 * half + CHARACTER * end
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
