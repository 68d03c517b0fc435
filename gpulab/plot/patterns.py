"""Matrices of ones and zeros side by side, such as masks of weights that stay."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.colors import ListedColormap

from . import style


def patterns(masks: Mapping[str, np.ndarray], caption: str) -> style.Picture:
    """Draw each two-dimensional mask under its name, filled where it is not zero.

    The caption says in one sentence what to see. Raises NothingToDraw without a mask, or where one is empty
    or not two-dimensional.
    """
    drawn = {name: np.asarray(mask) != 0 for name, mask in masks.items()}
    if not drawn:
        raise style.NothingToDraw("there is nothing to draw: no mask was given")
    for name, mask in drawn.items():
        if mask.ndim != 2 or mask.size == 0:
            raise style.NothingToDraw(f"{name} has the shape {mask.shape}; a mask has rows and columns")
    axes = style.axes(0.4 + 2.1 * len(drawn), 2.9, 1, len(drawn), squeeze=False)[0]
    for ax, (name, mask) in zip(axes, drawn.items(), strict=True):
        ax.imshow(mask, cmap=ListedColormap(["#00000000", style.GOOD]), vmin=0, vmax=1, aspect="equal")
        ax.set_xticks([])
        ax.set_yticks([])
        for spine in ax.spines.values():
            spine.set_visible(True)
        ax.set_title(name, fontsize=style.TEXT, color=style.INK)
    return style.finish(axes[0], caption, False)


def sample() -> style.Picture:
    """Half of a matrix, at single places and in rows."""
    numbers = np.random.default_rng(0).random((16, 16))
    rows = np.repeat(numbers[:, :1] < 0.5, 16, axis=1)
    return patterns(
        {"single weights": numbers < 0.5, "rows": rows}, "The same share of weights stays in both."
    )


if __name__ == "__main__":
    style.demo(sample)
