"""Kernels under the roof of a GPU."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from gpulab.simulator import hardware
from gpulab.simulator.hardware import GPU, Roofline, amount

from . import style
from .records import Point

TOUCHES = 0.02  # a rate that is so little above the roof lies on it: data sheets round
SIDES = {"memory": "the slope, bound by memory", "compute": "the flat part, bound by arithmetic"}


def roofline(
    points: Sequence[Point], gpu: GPU | Roofline | str, ax: Axes | None = None, *, dtypes: Sequence[str] = ()
) -> style.Picture:
    """Draw kernels at their intensity (FLOP/B) and rate (FLOP/s) below the roof of a GPU, or a given roof.

    A GPU has one roof for each of `dtypes` and of the points' dtypes (float32 when there are none); a given
    roof is that of all points. A kernel whose rate is unknown is a hollow mark on its roof: the most that it
    can reach.
    Raises NothingToDraw for a kernel without an intensity, and what `hardware.roofline` raises.
    """
    if missing := [point.label for point in points if point.intensity is None]:
        raise style.NothingToDraw(
            f"there is no intensity for {' and '.join(missing)}: "
            "the run did no floating-point operation or touched no memory"
        )
    wanted = dict.fromkeys([*dtypes, *(point.dtype for point in points)]) or {"float32": None}
    roofs = {dtype: gpu if isinstance(gpu, Roofline) else hardware.roofline(gpu, dtype) for dtype in wanted}
    highest_roof = max(roofs.values(), key=lambda roof: roof.peak)
    left = min([0.25, *(p.intensity / 2 for p in points if p.intensity > 0)])
    right = max([8 * highest_roof.ridge, *(2 * p.intensity for p in points)])
    floor = min([highest_roof.attainable(left), *(p.rate / 2 for p in points if p.rate)])

    ax, given = style.begin(ax, 7.2, 4.2)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xlim(left, right)
    ax.set_ylim(floor, 2.5 * highest_roof.peak)
    ax.set_xlabel("arithmetic intensity, FLOP per byte of DRAM traffic", color=style.INK)
    ax.set_ylabel("rate, FLOP/s", color=style.INK)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,g}" if value >= 1 else f"1/{1 / value:g}")
    ax.yaxis.set_major_formatter(lambda value, _: amount(value, "FLOP/s").removesuffix("FLOP/s").strip())
    if highest_roof.peak < 100 * floor:  # decades alone would leave a tick or two
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.minorticks_off()
    for roof in roofs.values():
        _roof(ax, roof, left, right)
    if len(roofs) == 1:
        _sides(ax, highest_roof, floor)
    for index, point in enumerate(points):
        _mark(ax, point, roofs[point.dtype], style.SERIES[index % len(style.SERIES)])
    lowest = min(roofs.values(), key=lambda roof: roof.peak)
    _along_the_slope(ax, lowest, left, [point.intensity for point in points])
    return style.finish(ax, _told(points, roofs), given)


def _roof(ax: Axes, roof: Roofline, left: float, right: float) -> None:
    x = [left, roof.ridge, right]
    ax.plot(x, [roof.attainable(intensity) for intensity in x], color=style.INK, linewidth=2)
    said = f"{amount(roof.peak, 'FLOP/s')} {roof.dtype}"
    for text, end in ((said, right), (f"ridge {roof.ridge:.3g} FLOP/B", roof.ridge)):
        ax.annotate(
            text, (end, roof.peak), xytext=(-4, 8), textcoords="offset points", ha="right", fontsize=8,
            color=style.INK,
        )  # fmt: skip


def _sides(ax: Axes, roof: Roofline, floor: float) -> None:
    """Say at the foot of the figure what binds on which side of the ridge."""
    top = floor * (roof.peak / floor) ** (1 / 6)  # a short line: labels of points stand above it
    ax.plot([roof.ridge] * 2, [floor, top], color=style.INK, linewidth=0.8, linestyle=":")
    for side, where, ha in (("memory", 1 / 1.1, "right"), ("arithmetic", 1.1, "left")):
        ax.text(roof.ridge * where, floor * 1.2, f"bound by {side}", ha=ha, fontsize=8, color=style.INK)


def _mark(ax: Axes, point: Point, roof: Roofline, colour: str) -> None:
    limit = roof.attainable(point.intensity)
    rate = point.rate or limit
    above = rate > limit  # its label stands where no line is
    ax.plot([point.intensity] * 2, [rate, limit], color=colour, linewidth=1.2, linestyle="--")
    ax.plot(
        point.intensity, rate, marker="o", markersize=8, color=colour,
        markerfacecolor=colour if point.rate else "none", markeredgewidth=1.8,
    )  # fmt: skip
    left = above and point.intensity < roof.ridge  # right of it is the slope
    ax.annotate(
        point.label, (point.intensity, rate), xytext=(-8 if left else 8, 4 if above else -4),
        textcoords="offset points", ha="right" if left else "left", va="bottom" if above else "top",
        fontsize=style.TEXT, color=style.INK,
    )  # fmt: skip


def _along_the_slope(ax: Axes, roof: Roofline, left: float, taken: Sequence[float]) -> None:
    """Write the bandwidth along the roof that it makes, far from the intensities that are `taken`; the angle
    is known once the figure is laid out."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    places = [left * (roof.ridge / left) ** share for share in (0.5, 0.3, 0.7)]
    middle = max(places, key=lambda x: min((abs(math.log(x / other)) for other in taken if other), default=0))
    ends = ax.transData.transform([(x, x * roof.bandwidth) for x in (left, roof.ridge)])
    angle = float(np.degrees(np.arctan2(*(ends[1] - ends[0])[::-1])))
    ax.text(
        middle, middle * roof.bandwidth * 1.15, f"{amount(roof.bandwidth, 'B/s')} of DRAM",
        rotation=angle, rotation_mode="anchor", ha="center", va="bottom", fontsize=8, color=style.INK,
    )  # fmt: skip


def _told(points: Sequence[Point], roofs: Mapping[str, Roofline]) -> str:
    roof = next(iter(roofs.values()))
    article = "an " if roof.gpu[0] in "AHLR" else "" if roof.gpu.startswith("this") else "a "
    told: dict[str, list[str]] = {}
    for point in points:
        limit = roofs[point.dtype]
        where = f"under {SIDES[limit.bound(point.intensity)]}"
        if point.rate and point.rate > (1 + TOUCHES) * limit.attainable(point.intensity):
            where = "above the roof, so its bytes came from a cache or its rate was measured wrongly"
        told.setdefault(where, []).append(point.label)
    parts = [f"{_names(labels)} {where}" for where, labels in told.items()]
    said = "; ".join(parts) or f"left of {roof.ridge:.3g} FLOP/B memory binds, right of it arithmetic"
    return f"The roof of {article}{roof.gpu}: {said}."


def _names(labels: list[str]) -> str:
    if len(labels) == 1:
        return f"{labels[0]} lies"
    return f"{', '.join(labels[:-1])} and {labels[-1]} lie"


def sample() -> style.Picture:
    """Three made-up kernels on an A100."""
    return roofline(
        [
            Point("saxpy", 1 / 6),
            Point("tiled matmul", 8, 9e12),
            Point("matmul with larger tiles", 32, 14e12),
        ],
        "A100",
    )


if __name__ == "__main__":
    style.demo(sample)
