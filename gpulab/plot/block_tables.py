"""Which blocks of a pool the tables of sequences name, and which of them several share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from . import style


def block_tables(
    tables: Mapping[str, Sequence[int]], lengths: Mapping[str, int], size: int, ax: Axes | None = None
) -> style.Picture:
    """Draw a row for each sequence: its blocks in order, each with its number in the pool, filled as far as
    its `size` slots hold tokens. Blocks in more than one table are of another colour.

    `lengths` are in tokens. Raises NothingToDraw without a block.
    """
    holders = Counter(block for table in tables.values() for block in table)
    if not holders:
        raise style.NothingToDraw("there is nothing to draw: no sequence has a block")
    width = max(len(table) for table in tables.values())
    ax, given = style.begin(ax, max(4.0, 1.2 + 0.62 * width), 0.9 + 0.36 * len(tables))
    for row, (name, table) in enumerate(tables.items()):
        for place, block in enumerate(table):
            share = min(max(lengths[name] - place * size, 0), size) / size
            fill = style.SERIES[1] if holders[block] > 1 else style.GOOD
            style.cell(ax, place + 0.04, row - 0.36, "", None, width=0.92, height=0.72)
            style.cell(ax, place + 0.04, row - 0.36, "", fill, width=0.92 * share, height=0.72)
            ax.annotate(
                str(block), (place + 0.5, row), ha="center", va="center", fontsize=8, color="#000000",
                bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"},
            )  # fmt: skip
    ax.set_xlim(0, width)
    ax.set_ylim(len(tables) - 0.4, -0.6)
    ax.set_yticks(range(len(tables)), list(tables))
    ax.set_xticks([place + 0.5 for place in range(width)], [f"{place * size}" for place in range(width)])
    ax.tick_params(length=0, colors=style.INK)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_xlabel("first token of the block", color=style.INK)
    entries, shared = sum(holders.values()), sum(count > 1 for count in holders.values())
    said = (
        f"{entries} table entries name {style.plural(len(holders), 'block')} of the pool; the orange ones, "
        f"{shared}, are in more than one table, and empty ends are not written yet."
    )
    return style.finish(ax, said, given)


def sample() -> style.Picture:
    """Two answers to one prompt of 36 tokens, after their first token."""
    return block_tables({"a": [0, 1, 2], "b": [0, 1, 3]}, {"a": 37, "b": 37}, 16)


if __name__ == "__main__":
    style.demo(sample)
