"""Where tensors lie in memory while they are alive."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from . import style

MIB = 2**20


def memory_map(
    tensors: Sequence[Sequence[int]], offsets: Sequence[int], ax: Axes | None = None
) -> style.Picture:
    """Draw each tensor, (bytes, first, last moment), as a box: upwards its bytes, to the right its life.

    Raises NothingToDraw without a tensor.
    """
    if not tensors:
        raise style.NothingToDraw("there is nothing to draw: no tensor was given")
    top = max(offset + size for offset, (size, _, _) in zip(offsets, tensors, strict=True))
    least = max(sum(s for s, a, b in tensors if a <= now <= b) for _, now, _ in tensors)
    begin, end = min(t[1] for t in tensors), max(t[2] for t in tensors) + 1
    ax, given = style.begin(ax, 7.2, 3.4)
    order = sorted(range(len(tensors)), key=lambda i: (tensors[i][1], i))
    for place, index in enumerate(order):
        size, first, last = tensors[index]
        fill = style.SERIES[place % len(style.SERIES)]
        style.cell(ax, first, offsets[index] / MIB, "", fill, width=last + 1 - first, height=size / MIB)
    ax.axhline(least / MIB, color=style.ALARM, linewidth=1.4)
    ax.annotate(  # beside the boxes, which would cross it
        "most that is\nalive at once", (end, least / MIB), xytext=(5, 0), textcoords="offset points",
        va="center", color=style.ALARM, fontsize=style.TEXT,
    )  # fmt: skip
    ax.set_xlim(begin, end)
    ax.set_ylim(0, max(top, least, 1) * 1.08 / MIB)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("operation", color=style.INK)
    ax.set_ylabel("address, MiB", color=style.INK)
    said = f"{len(tensors)} tensors over {end - begin} operations reach up to {style.number(top / MIB)} MiB"
    return style.finish(ax, f"{said}; {style.number(least / MIB)} MiB are alive at the worst moment.", given)


def sample() -> style.Picture:
    """Four tensors, two of which share a place."""
    tensors = [(4 * MIB, 0, 5), (2 * MIB, 1, 2), (2 * MIB, 3, 4), (3 * MIB, 2, 3)]
    return memory_map(tensors, [0, 4 * MIB, 4 * MIB, 6 * MIB])


if __name__ == "__main__":
    style.demo(sample)
