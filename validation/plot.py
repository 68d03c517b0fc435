"""Modelled times against measured ones, one mark for each launch."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from gpulab.plot import style

from .agreement import agreement, kendall
from .goals import TIME_ERROR

FAR = 3  # launches that are named: those that are farthest off


def predicted(times: Mapping[str, tuple[float, float]], gpu: str, ax: Axes | None = None) -> style.Picture:
    """Draw (modelled, measured) in seconds by name, both axes logarithmic, with the line where both are equal
    and the band that the goal allows. Raises NothingToDraw without any."""
    if not times:
        raise style.NothingToDraw("there is nothing to draw: no time was measured")
    ax, given = style.begin(ax, 6.0, 5.0)
    values = [value for pair in times.values() for value in pair]
    ends = min(values) / 1.5, max(values) * 1.5
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(*ends)
    ax.set_ylim(*ends)
    ax.plot(ends, ends, color=style.INK, linewidth=1)
    low, high = ([end * (1 + by) for end in ends] for by in (-TIME_ERROR, TIME_ERROR))
    ax.fill_between(ends, low, high, color=style.FAINT, linewidth=0)
    off = {name: abs(ours - theirs) / theirs for name, (ours, theirs) in times.items()}
    near = [name for name in times if off[name] <= TIME_ERROR]
    for names, colour, marker in ((near, style.GOOD, "o"), (off.keys() - near, style.BAD, "x")):
        x, y = [times[name][1] for name in names], [times[name][0] for name in names]
        ax.plot(x, y, marker, color=colour, markersize=5, linestyle="none")
    for name in sorted(off, key=lambda name: -off[name])[:FAR]:
        modelled, measured = times[name]
        left = measured**2 > ends[0] * ends[1]  # of its mark, where the right half ends at the frame
        ax.annotate(
            name, (measured, modelled), xytext=(-6 if left else 6, 0), textcoords="offset points",
            va="center", ha="right" if left else "left", fontsize=8, color=style.INK,
        )  # fmt: skip
    for axis, what in ((ax.xaxis, "measured"), (ax.yaxis, "modelled")):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(lambda seconds, _: f"{seconds * 1e6:g}")
        axis.set_label_text(f"{what}, µs", color=style.INK)
    ax.minorticks_off()
    found, tau = agreement(list(times.values())), kendall(list(times.values()))
    ranks = "" if tau is None else f", rank correlation {tau:.2f}"
    return style.finish(
        ax,
        f"{gpu}: {len(near)} of {len(times)} launches modelled within {100 * TIME_ERROR:.0f} % of what was "
        f"measured; mean error {100 * (found.mean_error or 0):.0f} %{ranks}.",
        given,
    )
