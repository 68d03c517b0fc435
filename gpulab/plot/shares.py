"""What each kernel is made of: parts of a whole, as one stacked bar for each."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes

from . import style


def shares(
    parts: Mapping[str, Mapping[str, float]], unit: str, caption: str, ax: Axes | None = None
) -> style.Picture:
    """Draw for each kernel (keys of `parts`) its parts as shares of their sum, at most four of them.

    All kernels have the same parts in the same order; `unit` says of what they are shares. The caption says
    in one sentence what to see. Raises NothingToDraw without a kernel or where all parts of one are 0.
    """
    if empty := [name for name, of in parts.items() if sum(of.values()) <= 0] or (
        [] if parts else ["any kernel"]
    ):
        raise style.NothingToDraw(f"there is nothing to share out for {' and '.join(empty)}")
    ax, given = style.begin(ax, 7.2, 1.3 + 0.38 * len(parts))
    named = list(next(iter(parts.values())))
    for row, of in enumerate(parts.values()):
        whole, left = sum(of.values()), 0.0
        for name, colour in zip(named, style.SERIES, strict=False):
            width = 100 * of[name] / whole
            label = f"{width:.0f}" if width >= 4 else ""
            style.cell(ax, left, row - 0.32, label, colour, width=width, height=0.64)
            left += width
    for place, (name, colour) in enumerate(zip(named, style.SERIES, strict=False)):
        at = 100 * place / len(named)
        style.cell(ax, at, -1.15, "", colour, width=2, height=0.4)
        ax.annotate(name, (at + 3, -0.95), va="center", fontsize=8, color=style.INK, annotation_clip=False)
    ax.set_xlim(0, 100)
    ax.set_ylim(len(parts) - 0.5, -1.3)
    ax.set_yticks(range(len(parts)), list(parts))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(f"% of the {unit}", color=style.INK)
    return style.finish(ax, caption, given)


def sample() -> style.Picture:
    """The instructions of two made-up kernels."""
    return shares(
        {
            "sum": {"memory": 10, "arithmetic": 80, "special": 0, "control": 10},
            "softmax": {"memory": 15, "arithmetic": 70, "special": 5, "control": 10},
        },
        "warp instructions",
        "Arithmetic is most of both kernels.",
    )


if __name__ == "__main__":
    style.demo(sample)
