"""What a modelled time is made of: a bar for each part of the GPU that could be the slowest."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes

from . import style


def time_breakdown(
    parts: Mapping[str, float], total: float, ax: Axes | None = None, *, least: float = 0.01
) -> style.Picture:
    """Draw how long each part would take alone, in seconds, the longest first; `total` is the time of all.

    Parts of no time and those below `least` of the longest are left out. Raises NothingToDraw where no part
    takes any time.
    """
    longest = max(parts.values(), default=0.0)
    if longest <= 0:
        raise style.NothingToDraw("there is nothing to draw: no part takes any time")
    shown = sorted(((t, name) for name, t in parts.items() if t and t >= least * longest), reverse=True)
    unit, scale = next(
        ((u, s) for u, s in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)) if total >= s), ("ns", 1e-9)
    )
    ax, given = style.begin(ax, 6.4, 1.2 + 0.38 * len(shown))
    for row, (seconds, _) in enumerate(shown):
        fill = style.BAD if row == 0 else style.GOOD
        style.cell(ax, 0, row - 0.3, "", fill, width=seconds / scale, height=0.6, wrong=row == 0)
        ax.annotate(
            _short(seconds / scale), (seconds / scale, row), xytext=(5, 0), textcoords="offset points",
            va="center", fontsize=style.TEXT, color=style.INK,
        )  # fmt: skip
    ax.axvline(total / scale, color=style.INK, linewidth=1.2, linestyle="--")
    ax.annotate(
        f"modelled {_short(total / scale)} {unit}", (total / scale, -0.72), xytext=(-4, 0),
        textcoords="offset points", va="top", ha="right", fontsize=8, color=style.INK,
    )  # fmt: skip
    ax.set_xlim(0, max(longest, total) / scale * 1.15)
    ax.set_ylim(len(shown) - 0.5, -0.85)
    ax.set_yticks(range(len(shown)), [name for _, name in shown])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(f"{unit}, if this part were all that takes time", color=style.INK)
    said = ", ".join(f"{name} {_short(seconds / scale)}" for seconds, name in shown)
    return style.finish(
        ax, f"Modelled {_short(total / scale)} {unit}; each part alone: {said} {unit}.", given
    )


def _short(value: float) -> str:
    """Three digits: a model is not better than that."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def sample() -> style.Picture:
    """A kernel that moves much and computes little."""
    return time_breakdown({"DRAM": 3.1e-6, "latency": 2.4e-6, "L2": 1e-6, "issue": 4e-7}, 5.2e-6)


if __name__ == "__main__":
    style.demo(sample)
