"""Tensor Memory in use: which columns were stored to, multiplied into and loaded from, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from . import style

KINDS = {"store": ("stores", style.LEAF), "product": ("products", style.DEEP), "load": ("loads", style.AMBER)}
WIDTH, HEIGHT = 9.0, 3.6  # inches
MOST = 400  # uses that can be told apart


def tensor_memory(uses: Sequence[Any], kernel: str = "", ax: Axes | None = None) -> style.Picture:
    """Draw each use as a bar over its columns, from its beginning to its end, counted in uses.

    `uses` have ``kind`` (store, product or load), ``warps``, ``lanes``, ``columns``, ``start``, ``stop`` and
    ``line``, as `gpulab.machine.tensor_memory` gives them. A wide bar is a product that was asked for and not
    done yet. Raises NothingToDraw without a use.
    """
    if not uses:
        raise style.NothingToDraw("there is nothing to draw: no Tensor Memory was used")
    drawn = uses[:MOST]
    end = max(use.stop for use in drawn)
    low = min(use.columns[0] for use in drawn)
    high = max(use.columns[1] for use in drawn) + 1
    ax, given = style.begin(ax, WIDTH, HEIGHT)
    for use in drawn:
        length, height = use.stop - use.start, use.columns[1] + 1 - use.columns[0]
        label = f"{use.lanes[0]}–{use.lanes[1]}"
        fits = length / end * (WIDTH - 1) > 0.075 * len(label) and height / (high - low) * (HEIGHT - 1) > 0.14
        style.cell(
            ax, use.start, use.columns[0], label if fits else "", KINDS[use.kind][1],
            width=length, height=height, size=7.5,
        )  # fmt: skip
    ax.set_xlim(0, end)
    ax.set_ylim(high, low)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("uses, in their order", color=style.INK)
    ax.set_ylabel("column of Tensor Memory", color=style.INK)
    there = [kind for kind in KINDS if any(use.kind == kind for use in drawn)]
    style.legend(ax, [KINDS[kind] for kind in there])
    counts = ", ".join(
        style.plural(sum(use.kind == kind for use in drawn), kind) for kind in KINDS if kind in there
    )
    where = f" in {kernel}" if kernel else ""
    said = f"Tensor Memory{where}: {counts}, in columns {low} to {high - 1}. Numbers in the bars are lanes."
    if len(uses) > len(drawn):
        said += f" Drawn are the first {len(drawn)} of {len(uses)} uses."
    return style.finish(ax, said, given)


def sample() -> style.Picture:
    """Two tiles: each is multiplied into its own columns while the other one is loaded."""
    from types import SimpleNamespace as Use

    def use(kind: str, first: int, start: int, stop: int) -> Any:
        return Use(
            kind=kind, warps=(0,), lanes=(0, 127), columns=(first, first + 63), start=start, stop=stop, line=0
        )

    uses = []
    for tile in range(4):
        uses.append(use("product", tile % 2 * 64, 3 * tile, 3 * tile + 2))
        uses.append(use("load", tile % 2 * 64, 3 * tile + 2, 3 * tile + 3))
    return tensor_memory(uses, "sample")


if __name__ == "__main__":
    style.demo(sample)
