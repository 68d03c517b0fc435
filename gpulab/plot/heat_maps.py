"""How large the numbers of several arrays are, one picture for each, on one scale."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.colors import LogNorm

from . import style


def heat_maps(arrays: Mapping[str, np.ndarray], row: str, column: str, caption: str) -> style.Picture:
    """Draw the absolute values of two-dimensional arrays side by side, on one logarithmic scale.

    `row` and `column` say what the axes count. What is smaller than a thousandth of the largest is drawn as
    that. The caption says in one sentence what to see. Raises NothingToDraw where there is no number but 0.
    """
    largest = max((float(np.abs(array).max()) for array in arrays.values() if array.size), default=0.0)
    if largest <= 0:
        raise style.NothingToDraw("there is nothing to draw: no number is larger than 0")
    axes = style.axes(1.0 + 3.0 * len(arrays), 3.4, 1, len(arrays), squeeze=False)[0]
    scale = LogNorm(largest / 1000, largest, clip=True)
    for ax, (name, array) in zip(axes, arrays.items(), strict=True):
        image = ax.imshow(
            np.maximum(np.abs(array), largest / 1000), norm=scale, cmap="cividis", aspect="auto"
        )
        ax.set_title(name, fontsize=style.TEXT + 1, color=style.INK)
        ax.set_xlabel(column, color=style.INK)
    axes[0].set_ylabel(row, color=style.INK)
    bar = axes[0].figure.colorbar(image, ax=list(axes), label="absolute value")
    bar.ax.tick_params(which="both", colors=style.INK, labelsize=style.TEXT)
    bar.ax.yaxis.label.set_color(style.INK)
    return style.finish(axes[0], caption, False)


def sample() -> style.Picture:
    """Two arrays, one with a loud column and one with a loud row."""
    numbers = np.random.default_rng(0).standard_normal((2, 16, 8))
    numbers[0, :, 3] *= 20
    numbers[1, 5] *= 20
    return heat_maps(
        {"K": numbers[0], "V": numbers[1]}, "token", "channel", "K has a loud column, V a loud row."
    )


if __name__ == "__main__":
    style.demo(sample)
