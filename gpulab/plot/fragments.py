"""Which lane of a warp holds which element of a matrix, and in which register."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from . import style


def fragments(held: Mapping[str, tuple[np.ndarray, np.ndarray]], caption: str) -> style.Picture:
    """Draw small matrices side by side: a number is the lane that holds the element, a colour the register.

    Each name has two int arrays (rows, columns): the lanes, and the numbers of the registers. The caption
    says in one sentence what to see. Raises NothingToDraw without a matrix.
    """
    if not held:
        raise style.NothingToDraw("there is nothing to draw: no matrix was given")
    widths = [np.shape(lanes)[1] for lanes, _ in held.values()]
    highest = max(np.shape(lanes)[0] for lanes, _ in held.values())
    size = 0.2 * sum(widths) + 0.3 * len(held), 0.2 * highest + 0.9
    axes = style.axes(*size, 1, len(held), squeeze=False, width_ratios=widths)[0]
    for ax, (name, (lanes, registers)) in zip(axes, held.items(), strict=True):
        style.bare(ax)
        for (row, column), lane in np.ndenumerate(lanes):
            fill = style.SERIES[int(registers[row, column]) % len(style.SERIES)]
            style.cell(ax, column, row, str(lane), fill, size=5.5)
        rows, columns = np.shape(lanes)
        ax.set_xlim(-0.06, columns + 0.06)
        ax.set_ylim(rows + 0.06, -0.06)
        ax.set_aspect("equal")
        ax.set_anchor("NW")
        ax.set_title(name, loc="left", fontsize=style.TEXT, color=style.INK)
    return style.finish(axes[0], caption, False)


def sample() -> style.Picture:
    """The left and the right factor of an m16n8k16 product on tensor cores."""
    row, column = np.mgrid[:16, :16]
    left = row % 8 * 4 + column % 8 // 2, row // 8 + column // 8 * 2
    row, column = np.mgrid[:16, :8]
    right = column * 4 + row % 8 // 2, row // 8
    return fragments(
        {"left factor": left, "right factor": right},
        "A lane holds pairs along a row of the left factor, and down a column of the right one.",
    )


if __name__ == "__main__":
    style.demo(sample)
