"""How many lanes of each warp take part, over time: a lane for each warp of a block."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from . import readings, style
from .records import LANES, Pass

ROOM = 0.85  # of a warp's lane that a full warp fills


def warp_lanes(
    warps: Sequence[Sequence[Pass]], ax: Axes | None = None, *, kernel: str = "", label: str = ""
) -> style.Picture:
    """Draw one lane for each warp, over the instructions that the warp issues. A block is as high as lanes
    take part: blue with all 32, orange with fewer.

    With `label` only passes with that label are filled, the others are outlines. Raises NothingToDraw without
    a pass.
    """
    if not any(warps):
        raise style.NothingToDraw("there is nothing to draw: no warp ran a pass")
    end = max(sum(p.instructions for p in passes) for passes in warps)
    ax, given = style.begin(ax, 7.0, 1.1 + 0.42 * len(warps))
    for row, passes in enumerate(warps):
        _draw(ax, row, passes, label)
    ax.set_xlim(0, 1.02 * end)
    ax.set_ylim(len(warps), 0)
    ax.set_yticks(np.arange(len(warps)) + 0.5, [f"warp {warp}" for warp in range(len(warps))])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel("instructions that the warp has issued, in order", color=style.INK)
    scale = ax.secondary_yaxis("right")  # how high a block of the first warp is
    scale.set_yticks([1, 1 - ROOM], ["0 lanes", f"{LANES} lanes"])
    scale.tick_params(colors=style.INK, labelsize=style.TEXT)
    scale.spines["right"].set_visible(False)
    _name_colours(ax, warps)
    return style.finish(ax, _told(warps, kernel, label), given)


def _draw(ax: Axes, row: int, passes: Sequence[Pass], label: str) -> None:
    start = 0
    boxes: dict[tuple[str, bool], list[Rectangle]] = {}
    for one in passes:
        share = sum(map(bool, one.lanes)) / LANES
        height = ROOM * share
        fill = style.GOOD if share == 1 else style.AMBER
        box = Rectangle((start, row + 1 - height), one.instructions, height)
        boxes.setdefault((fill, not label or one.label == label), []).append(box)
        lanes = style.plural(sum(map(bool, one.lanes)), "lane")
        words = f"warp {row}, {one.label}\n{style.plural(one.instructions, 'instruction')} with {lanes}"
        readings.say(ax, start, row + 1 - ROOM, one.instructions, ROOM, words)
        start += one.instructions
    for (fill, filled), its in boxes.items():
        ax.add_collection(
            PatchCollection(
                its,
                facecolor=fill if filled else "none",
                edgecolor="none" if filled else style.FAINT,
                linewidth=0.7,
            ),
            autolim=False,
        )


def _name_colours(ax: Axes, warps: Sequence[Sequence[Pass]]) -> None:
    """A word in each colour that is there, above the first warp."""
    shares = {sum(map(bool, one.lanes)) / LANES == 1 for passes in warps for one in passes}
    at = 0.0
    for full, words, colour in (
        (True, "all 32 lanes take part", style.GOOD),
        (False, "some lanes", style.AMBER),
    ):
        if full in shares:
            ax.annotate(
                f"■ {words}", (at, 1), xycoords="axes fraction", xytext=(0, 5), textcoords="offset points",
                fontsize=style.TEXT, color=style.INK,
            )  # fmt: skip
            ax.annotate(
                "■", (at, 1), xycoords="axes fraction", xytext=(0, 5), textcoords="offset points",
                fontsize=style.TEXT, color=colour,
            )  # fmt: skip
            at += 0.32


def _told(warps: Sequence[Sequence[Pass]], kernel: str, label: str) -> str:
    chosen = [p for passes in warps for p in passes if not label or p.label == label]
    of = f" of {kernel}" if kernel else ""
    at = f" at {label}" if label else ""
    issued = sum(p.instructions for p in chosen)
    active = sum(p.instructions * sum(map(bool, p.lanes)) for p in chosen)
    apart = sum(any(not all(p.lanes) for p in passes) for passes in warps)
    told = "all lanes take part everywhere"
    if issued and active < LANES * issued:
        told = (
            f"{100 * active / (LANES * issued):.0f} % of the lanes take part{at}, and "
            f"{apart} of {style.plural(len(warps), 'warp')} {'runs' if apart == 1 else 'run'} code with a "
            "part of the lanes (orange)"
        )
    return f"The warps of one block{of} over time: {told}."


def sample() -> style.Picture:
    """Four warps, the last with a branch that only some lanes take."""
    every = np.ones(LANES, bool)
    some = np.arange(LANES) < 12
    straight = [Pass("line 3", every, 10), Pass("line 5", every, 6)]
    apart = [Pass("line 3", every, 10), Pass("line 4", some, 8), Pass("line 5", ~some, 6)]
    return warp_lanes([straight, straight, straight, apart], kernel="example")


if __name__ == "__main__":
    style.demo(sample)
