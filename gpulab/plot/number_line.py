"""Where the numbers of a format lie: one line a format, a tick a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from . import style

MOST = 4096  # ticks of one line; more would be a black bar


def number_line(
    numbers: Mapping[str, Sequence[float]],
    ax: Axes | None = None,
    *,
    within: tuple[float, float] | None = None,
    marked: Mapping[str, float] | None = None,
    log: bool = False,
    caption: str = "",
) -> style.Picture:
    """Draw a line per name with a tick at each of its numbers.

    `within` cuts all lines to an interval, `log` suits positive numbers of many magnitudes. `marked` are
    values by name, drawn over all lines. The caption says in one sentence what to see; without one it counts
    the numbers of each line. Raises NothingToDraw where no number is left.
    """
    low, high = within or (-float("inf"), float("inf"))
    lines = {
        name: sorted({float(v) for v in values if low <= v <= high and (v > 0 or not log)})
        for name, values in numbers.items()
    }
    if not any(lines.values()):
        raise style.NothingToDraw("there is nothing to draw: no number lies within the interval")
    if crowded := [name for name, values in lines.items() if len(values) > MOST]:
        raise style.NothingToDraw(
            f"{crowded[0]} has {len(lines[crowded[0]]):,} numbers here, too many to tell apart: "
            "choose a narrower interval"
        )
    ax, given = style.begin(ax, 7.2, 0.9 + 0.42 * len(lines))
    if log:
        ax.set_xscale("log", base=2)
    for row, values in enumerate(lines.values()):
        ax.hlines(row, min(values, default=low), max(values, default=high), color=style.FAINT, linewidth=1)
        width = 1.6 if len(values) < 100 else 0.8
        colour = style.SERIES[row % 3]
        ax.vlines(values, row - 0.28, row + 0.28, color=colour, linewidth=width)
    for name, value in (marked or {}).items():
        ax.axvline(value, color=style.ALARM, linewidth=1.4, linestyle="--")
        ax.annotate(
            name, (value, -0.62), xytext=(4, 0), textcoords="offset points", va="center",
            fontsize=style.TEXT, color=style.ALARM,
        )  # fmt: skip
    ax.set_ylim(len(lines) - 0.5, -0.85 if marked else -0.5)
    ax.set_yticks(range(len(lines)), list(lines))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel("value", color=style.INK)
    said = "; ".join(
        f"{name} has {len(values):,} numbers from {values[0]:g} to {values[-1]:g}"
        for name, values in lines.items()
        if values
    )
    return style.finish(ax, caption or f"Numbers of each format: {said}.", given)


def sample() -> style.Picture:
    """The numbers of two formats of four and five bits."""
    e2m1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    e2m2 = [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, 6, 7]
    return number_line({"E2M1": e2m1, "E2M2": e2m2}, marked={"3.7": 3.7})


if __name__ == "__main__":
    style.demo(sample)
