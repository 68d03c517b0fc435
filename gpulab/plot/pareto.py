"""Two costs of several ways of doing one thing, and those that no other beats in both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import LogLocator, NullLocator

from . import readings, style


def front(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """The names that no other point beats: none is at most as far in both directions and nearer in one.
    Sorted by the first cost."""
    best: list[str] = []
    for name, _ in sorted(points.items(), key=lambda item: item[1]):
        if not best or points[name][1] < points[best[-1]][1]:
            best.append(name)
    return best


def pareto(
    points: Mapping[str, tuple[float, float]],
    x: str,
    y: str,
    caption: str,
    ax: Axes | None = None,
    *,
    log_x: bool = False,
    log_y: bool = False,
) -> style.Picture:
    """Draw a named point for each (x, y); less is better in both. A line joins the points on the front.

    `x` and `y` name the axes, with units. Raises NothingToDraw without a point.
    """
    if not points:
        raise style.NothingToDraw("there is nothing to draw: no point was given")
    ax, given = style.begin(ax, 7.2, 4.6)
    if log_x:
        ax.set_xscale("log")
        _write_numbers(ax.xaxis)
    if log_y:
        ax.set_yscale("log")
        _write_numbers(ax.yaxis)
    best = front(points)
    ax.plot(*zip(*(points[name] for name in best), strict=True), color=style.GOOD, linewidth=1.5, zorder=1)
    for name, place in points.items():
        on_front = name in best
        ax.plot(
            *place,
            marker="o" if on_front else "X",
            color=style.GOOD if on_front else style.BAD,
            markersize=6,
            zorder=2,
        )
    ax.set_xlabel(x, color=style.INK)
    ax.set_ylabel(y, color=style.INK)
    ax.margins(x=0.16, y=0.08)
    _say(ax, points, x, y)
    _name(ax, points, [points[name] for name in best])
    return style.finish(ax, caption, given)


def _say(ax: Axes, points: Mapping[str, tuple[float, float]], x: str, y: str) -> None:
    """Have a square around each point say its name and its numbers."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    for name, place in points.items():
        across, up = ax.transData.transform(place)
        corners = ax.transData.inverted().transform([(across - 9, up - 9), (across + 9, up + 9)])
        words = f"{name}\n{x}: {style.number(place[0])}\n{y}: {style.number(place[1])}"
        (left, low), (width, height) = corners[0], corners[1] - corners[0]
        readings.say(ax, left, low, width, height, words)


def _write_numbers(axis: Axis) -> None:
    """Ticks at 1, 2 and 5 of each power of ten, without exponents."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: style.number(value))


def _along(ax: Axes, line: Sequence[tuple[float, float]]) -> list[np.ndarray]:
    """Places on a line, a few pixels apart, in pixels; none for a line of one point."""
    corners = [ax.transData.transform(place) for place in line]
    return [
        a + (b - a) * part
        for a, b in pairwise(corners)
        for part in np.linspace(0, 1, 2 + int(np.hypot(*(b - a)) / 8))
    ]


def _name(ax: Axes, points: Mapping[str, tuple[float, float]], line: Sequence[tuple[float, float]]) -> None:
    """Write each name right of its point, or where something is there already, left, above or below."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    taken = [ax.transData.transform(place) for place in points.values()]
    boxes = [(px - 4, py - 4, px + 4, py + 4) for px, py in taken]
    boxes += [(px - 1, py - 1, px + 1, py + 1) for px, py in _along(ax, line)]
    unit = figure.dpi / 72
    height = 11 * unit
    for name, (px, py) in zip(points, taken, strict=True):
        width = 0.56 * style.TEXT * len(name) * unit
        ways = [
            (dx, dy, align)
            for dy in (0.0, 10.0, -10.0, 20.0, -20.0, 30.0, -30.0)
            for dx, align in ((7.0, "left"), (-7.0, "right"))
        ]
        for dx, dy, align in ways:
            left = px + dx * unit - (width if align == "right" else 0)
            box = (left, py + dy * unit - height / 2, left + width, py + dy * unit + height / 2)
            if not any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in boxes):
                break
        else:
            dx, dy, align = ways[0]
        boxes.append(box)
        ax.annotate(
            name,
            points[name],
            xytext=(dx, dy),
            textcoords="offset points",
            ha=align,
            va="center",
            fontsize=style.TEXT,
            color=style.INK,
            annotation_clip=False,
        )


def sample() -> style.Picture:
    """Made-up ways of storing a model."""
    return pareto(
        {"16 bits": (200, 0.1), "8 bits": (100, 0.11), "4 bits": (50, 0.3), "careless": (60, 3.0)},
        "size (kB)",
        "loss (nats)",
        "Eight bits halve the size for next to nothing.",
        log_x=True,
        log_y=True,
    )


if __name__ == "__main__":
    style.demo(sample)
