"""Kernels under the roof of a GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from gpulab import hardware
from gpulab.hardware import GPU, Roofline, amount

from . import style
from .records import Point


def roofline(
    points: Sequence[Point], gpu: GPU | str, ax: Axes | None = None, *, dtypes: Sequence[str] = ("float32",)
) -> style.Picture:
    """Draw kernels at their intensity (FLOP/B) and rate (FLOP/s) below the roof of a GPU, one roof per dtype.

    A kernel whose rate is unknown is a hollow mark on the first roof: the most that it can reach.
    """
    roofs = [hardware.roofline(gpu, dtype) for dtype in dtypes]
    roof = roofs[0]
    ax, given = style.begin(ax, 7.2, 4.2)
    lowest = min([0.25, *(p.intensity / 2 for p in points if p.intensity > 0)])
    highest = max([8 * max(r.ridge for r in roofs), *(2 * p.intensity for p in points)])
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    floor = min([roof.attainable(lowest), *(p.rate / 2 for p in points if p.rate)])
    ax.set_xlim(lowest, highest)
    ax.set_ylim(floor, 2.5 * max(r.peak for r in roofs))
    top = max(r.ridge for r in roofs)
    ax.plot([lowest, top], [lowest * roof.bandwidth, top * roof.bandwidth], color=style.INK, linewidth=2)
    for each in roofs:
        ax.plot([each.ridge, highest], [each.peak, each.peak], color=style.INK, linewidth=2)
        said = f"{amount(each.peak, 'FLOP/s')} {each.dtype}"
        ax.text(highest, each.peak * 1.08, said, ha="right", va="bottom", fontsize=8, color=style.INK)
    sixth = floor * (roof.peak / floor) ** (1 / 6)  # a short line: labels of points stand above it
    ax.plot([roof.ridge] * 2, [floor, sixth], color=style.INK, linewidth=0.8, linestyle=":")
    for side, where, ha in (("memory", 1 / 1.1, "right"), ("arithmetic", 1.1, "left")):
        ax.text(roof.ridge * where, floor * 1.2, f"bound by {side}", ha=ha, fontsize=8, color=style.INK)
    ax.annotate(
        f"ridge {roof.ridge:.3g} FLOP/B", (roof.ridge, roof.peak), xytext=(-4, 8), textcoords="offset points",
        ha="right", fontsize=8, color=style.INK,
    )  # fmt: skip
    for index, point in enumerate(points):
        _mark(ax, point, roof, style.SERIES[index % len(style.SERIES)])
    ax.set_xlabel("arithmetic intensity, FLOP per byte of DRAM traffic", color=style.INK)
    ax.set_ylabel("rate, FLOP/s", color=style.INK)
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}" if value >= 1 else f"1/{1 / value:g}")
    ax.yaxis.set_major_formatter(lambda value, _: amount(value, "FLOP/s").removesuffix("FLOP/s").strip())
    ax.minorticks_off()
    _along_the_slope(ax, roof, lowest)
    return style.finish(ax, _told(points, roof), given)


def _mark(ax: Axes, point: Point, roof: Roofline, colour: str) -> None:
    limit = roof.attainable(point.intensity)
    rate = point.rate or limit
    ax.plot([point.intensity] * 2, [rate, limit], color=colour, linewidth=1.2, linestyle="--")
    ax.plot(
        point.intensity,
        rate,
        marker="o",
        markersize=8,
        color=colour,
        markerfacecolor=colour if point.rate else "none",
        markeredgewidth=1.8,
    )
    ax.annotate(
        point.label,
        (point.intensity, rate),
        xytext=(8, -4),
        textcoords="offset points",
        va="top",
        fontsize=style.TEXT,
        color=style.INK,
    )


def _along_the_slope(ax: Axes, roof: Roofline, lowest: float) -> None:
    """Write the bandwidth along the roof that it makes; the angle is known once the figure is laid out."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    middle = math.sqrt(lowest * roof.ridge)
    ends = ax.transData.transform([(x, x * roof.bandwidth) for x in (lowest, roof.ridge)])
    angle = float(np.degrees(np.arctan2(*(ends[1] - ends[0])[::-1])))
    ax.text(
        middle,
        middle * roof.bandwidth * 1.15,
        f"{amount(roof.bandwidth, 'B/s')} of DRAM",
        rotation=angle,
        rotation_mode="anchor",
        ha="center",
        va="bottom",
        fontsize=8,
        color=style.INK,
    )


def _told(points: Sequence[Point], roof: Roofline) -> str:
    said = f"The roof of an {roof.gpu}" if roof.gpu[0] in "AHL" else f"The roof of a {roof.gpu}"
    sides = {
        side: [p.label for p in points if roof.bound(p.intensity) == side] for side in ("memory", "compute")
    }
    parts = []
    if sides["memory"]:
        parts.append(f"{_names(sides['memory'])} under the slope, bound by memory")
    if sides["compute"]:
        parts.append(f"{_names(sides['compute'])} under the flat part, bound by arithmetic")
    return (
        f"{said}: {'; '.join(parts)}."
        if parts
        else f"{said}, bound by memory left of {roof.ridge:.3g} FLOP/B."
    )


def _names(labels: list[str]) -> str:
    listed = " and ".join([", ".join(labels[:-1]), labels[-1]] if len(labels) > 1 else labels)
    return f"{listed} {'lies' if len(labels) == 1 else 'lie'}"


def sample() -> style.Picture:
    """Three made-up kernels on an A100."""
    return roofline(
        [Point("saxpy", 1 / 6), Point("tiled matmul", 8, 9e12), Point("matmul, larger tiles", 32, 14e12)],
        "A100",
    )


if __name__ == "__main__":
    style.demo(sample)
