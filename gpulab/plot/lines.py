"""Curves over one quantity, with their names at their ends or starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator

from . import readings, style

STYLES = ("-", "--", ":", "-.")
# Where a name may stand beside the end of its curve: points to move it, and which side of it stays there.
BESIDE = (((6, 0), "left", "center"), ((0, 7), "center", "bottom"), ((0, -7), "center", "top"))


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
            low, high = axis.get_view_interval()
            if high < 100 * low:  # powers of ten alone would leave a tick or two
                axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(lambda value, _: style.number(value))
            axis.set_minor_formatter("")
    if not log_y and max(abs(value) for points in curves.values() for _, value in points) >= 1000:
        ax.yaxis.set_major_formatter(lambda value, _: style.number(value))  # not along x: years stand there
    readings.say_curves(
        ax, curves, [style.SERIES[i % len(style.SERIES)] for i in range(len(curves))], x, y, log_x
    )
    _name_ends(ax, ends)
    return style.finish(ax, caption, given)


def _name_ends(ax: Axes, ends: list[End]) -> None:
    """Write each name right of the axes, behind a stroke of its curve and level with the curve's end, or as
    near as other names leave room. A curve that stops early has its name at its end if nothing is there."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # the limits of the axes are known once they are laid out
    outside = sorted((min(_within(ax, end)[1], 1.0), end) for end in ends if not _named_inside(ax, end))
    height = 15 * figure.dpi / 72 / ax.get_window_extent().height
    for (place, end), at in zip(outside, _apart([place for place, _ in outside], height), strict=True):
        stroke = {"arrowstyle": "-", "color": end.colour, "shrinkA": 0, "shrinkB": 0}
        ax.annotate(
            end.name, (1.02, at), xycoords="axes fraction", xytext=(22, 0), textcoords="offset points",
            va="center", fontsize=style.TEXT, color=style.INK if end.colour != style.ALARM else style.ALARM,
            arrowprops=stroke | {"shrinkA": 3, "linewidth": 2, "relpos": (0, 0.5), "linestyle": end.dash},
            annotation_clip=False,
        )  # fmt: skip
        if abs(at - place) < 0.01:
            continue
        ax.annotate(
            "", (1.0, place), xycoords="axes fraction", xytext=(1.02, at), textcoords="axes fraction",
            arrowprops=stroke | {"linewidth": 0.8}, annotation_clip=False,
        )  # fmt: skip


def _within(ax: Axes, end: End) -> tuple[float, float]:
    """Where a curve ends, as shares of the axes."""
    x, y = ax.transAxes.inverted().transform(ax.transData.transform((end.x, end.y)))
    return float(x), float(y)


def _named_inside(ax: Axes, end: End) -> bool:
    """Whether the curve stops early and there is room for its name: then the name is written there."""
    if _within(ax, end)[0] > 0.85:
        return False
    inside = ax.get_window_extent()
    curves = [line.get_transform().transform_path(line.get_path()) for line in ax.lines]
    others = [text.get_window_extent() for text in ax.texts]
    for offset, across, up in BESIDE:
        name = ax.annotate(
            end.name, (end.x, end.y), xytext=offset, textcoords="offset points", ha=across, va=up,
            fontsize=style.TEXT, color=style.INK,
        )  # fmt: skip
        box = name.get_window_extent().padded(2)
        free = not any(curve.intersects_bbox(box, filled=False) for curve in curves)
        free &= not any(other.overlaps(box) for other in others)
        if free and inside.x0 < box.x0 and box.x1 < inside.x1 and inside.y0 < box.y0 and box.y1 < inside.y1:
            return True
        name.remove()
    return False


def _apart(places: list[float], height: float) -> list[float]:
    """Sorted `places` moved as little as possible until they are `height` apart and none is above 1."""
    groups: list[
        tuple[float, int]
    ] = []  # the place of the first of neighbours that touch, and how many they are
    for index, place in enumerate(places):
        groups.append((place - index * height, 1))
        while len(groups) > 1 and groups[-2][0] > groups[-1][0]:
            (one, some), (other, more) = groups[-2:]
            groups[-2:] = [((one * some + other * more) / (some + more), some + more)]
    moved = [level for level, count in groups for _ in range(count)]
    last = len(places) - 1
    return [min(level + i * height, 1 - (last - i) * height) for i, level in enumerate(moved)]


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
