"""Curves over one quantity, with their names at their ends or starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from . import style

STYLES = ("-", "--", ":", "-.")


class End(NamedTuple):
    """Where a curve ends, its name, and how it is drawn."""

    x: float
    y: float
    name: str
    colour: str
    dash: str


def lines(
    curves: Mapping[str, Sequence[tuple[float, float]]],
    x: str,
    y: str,
    caption: str,
    ax: Axes | None = None,
    *,
    limits: Mapping[str, float] | None = None,
    log_x: bool = False,
    log_y: bool = False,
    step: bool = False,
    labels: Mapping[str, str] | None = None,
    names_at: Literal["end", "start"] = "end",
) -> style.Picture:
    """Draw one curve for each name through its points (x, y); each has its colour and its kind of line.

    `x` and `y` name the axes, with units. `limits` are horizontal lines by name. `step` draws a curve that
    keeps a value until the next point. `labels` replaces names where the curve is written at; `names_at` its
    start suits curves that end in one. The caption says in one sentence what to see. Raises NothingToDraw
    without a point.
    """
    if not any(curves.values()):
        raise style.NothingToDraw("there is nothing to draw: no curve has a point")
    ax, given = style.begin(ax, 7.2, 3.6)
    if log_x:
        ax.set_xscale("log")
    if log_y:
        ax.set_yscale("log")
    ends: list[End] = []
    for index, (name, points) in enumerate(curves.items()):
        colour = style.SERIES[index % len(style.SERIES)]
        ax.plot(
            *zip(*points, strict=True),
            color=colour,
            linewidth=2,
            linestyle=STYLES[index % len(STYLES)],
            drawstyle="steps-post" if step else "default",
        )
        said = (labels or {}).get(name, name)
        if names_at == "end":
            ends.append(End(*points[-1], said, colour, STYLES[index % len(STYLES)]))
        else:
            ax.annotate(
                said,
                points[0],
                xytext=(2, 3),
                textcoords="offset points",
                fontsize=style.TEXT,
                color=style.INK,
            )
    right = max(points[-1][0] for points in curves.values() if points)
    for name, value in (limits or {}).items():
        ax.axhline(value, color=style.ALARM, linewidth=1.2)
        ends.append(End(right, value, name, style.ALARM, "-"))
    ax.set_xlabel(x, color=style.INK)
    ax.set_ylabel(y, color=style.INK)
    ax.margins(x=0.01)
    if not log_x and all(place == int(place) for points in curves.values() for place, _ in points):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))  # a count has no halves
    for axis, log in ((ax.xaxis, log_x), (ax.yaxis, log_y)):
        if log:
            axis.set_major_formatter(lambda value, _: style.number(value))
            axis.set_minor_formatter("")
    if not log_y and max(abs(value) for points in curves.values() for _, value in points) >= 1000:
        ax.yaxis.set_major_formatter(lambda value, _: style.number(value))  # not along x: years stand there
    _name_ends(ax, ends)
    return style.finish(ax, caption, given)


def _name_ends(ax: Axes, ends: list[End]) -> None:
    """Write each name right of the axes at its end, moved up where it would lie on the one below."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # the limits of the axes are known once they are laid out
    low, high = ax.transData.transform([(1, ax.get_ylim()[0]), (1, ax.get_ylim()[1])])[:, 1]
    places = [
        (
            float(ax.transData.transform((end.x, end.y))[1] - low) / (high - low),
            end.name,
            end.colour,
            end.dash,
        )
        for end in ends
    ]
    height = 15 * figure.dpi / 72 / (high - low)
    lowest = -1.0
    for place, name, colour, dash in sorted(places):
        at = max(min(place, 1.0), lowest + height)
        lowest = at
        ax.annotate(
            name, (1.005, min(place, 1.0)), xycoords="axes fraction", va="center", fontsize=style.TEXT,
            color=style.INK if colour != style.ALARM else style.ALARM,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 3, "shrinkA": 0, "shrinkB": 0,
                        "relpos": (0, 0.5), "linestyle": dash},
            xytext=(1.05, at), textcoords="axes fraction", annotation_clip=False,
        )  # fmt: skip


def sample() -> style.Picture:
    """Two made-up curves and a limit."""
    n = range(1, 65)
    return lines(
        {"twice": [(i, 2.0 * i) for i in n], "its root": [(i, i**0.5) for i in n]},
        "n",
        "value, units",
        "The double passes the limit at 20, the root never does.",
        limits={"limit": 40},
    )


if __name__ == "__main__":
    style.demo(sample)
