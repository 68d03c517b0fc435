"""How a count grows with a stride, or any count over any size that doubles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from . import style


def stride_sweep(
    counts: Mapping[str, Sequence[tuple[float, float]]],
    unit: str,
    ax: Axes | None = None,
    *,
    over: str = "stride, elements",
    ideal: float | None = None,
) -> style.Picture:
    """Draw one line per name through its (stride, count) pairs, on a binary logarithmic x axis.

    A line is named where it is furthest from the others; `ideal` is a dashed line. Raises ValueError
    without a pair.
    """
    if not any(counts.values()):
        raise style.NothingToDraw("there is nothing to draw: no count was given")
    ax, given = style.begin(ax, 6.6, 3.6)
    ax.set_xscale("log", base=2)
    markers = "osD^v"
    for index, (name, pairs) in enumerate(counts.items()):
        if not pairs:
            continue
        x, y = zip(*pairs, strict=True)
        colour, marker = style.SERIES[index % len(style.SERIES)], markers[index % len(markers)]
        ax.plot(x, y, color=colour, marker=marker, markersize=6, linewidth=2)
        spot = _free_spot(name, counts)
        ax.annotate(
            name, spot, xytext=(7, -7), textcoords="offset points", va="top",
            fontsize=style.TEXT, color=style.INK,
        )  # fmt: skip
    strides = sorted({x for pairs in counts.values() for x, _ in pairs})
    ax.set_xticks(strides, [f"{x:g}" for x in strides])
    ax.minorticks_off()
    highest = max(y for pairs in counts.values() for _, y in pairs)
    ax.set_xlim(strides[0] / 1.1, strides[-1] * 1.1)
    ax.set_ylim(0, 1.12 * highest)
    ax.set_xlabel(over, color=style.INK)
    ax.set_ylabel(unit, color=style.INK)
    if ideal is not None:
        ax.axhline(ideal, color=style.INK, linewidth=1.2, linestyle="--")
        ax.text(
            strides[-1], ideal + 0.02 * highest, f"ideal {ideal:g}", ha="right", fontsize=8, color=style.INK
        )
    said = "; ".join(
        f"{name} goes from {pairs[0][1]:,.4g} at {pairs[0][0]:g} to {pairs[-1][1]:,.4g} at {pairs[-1][0]:g}"
        for name, pairs in counts.items()
        if pairs
    )
    return style.finish(ax, f"{unit[:1].upper()}{unit[1:]} over {over.split(',')[0]}: {said}.", given)


def _free_spot(name: str, counts: Mapping[str, Sequence[tuple[float, float]]]) -> tuple[float, float]:
    """The point of a line that is furthest above or below all others, the last one of several."""
    others = [dict(pairs) for other, pairs in counts.items() if other != name]

    def room(pair: tuple[float, float]) -> tuple[float, float]:
        x, y = pair
        return min((abs(y - other[x]) for other in others if x in other), default=0.0), x

    return max(counts[name], key=room)


def sample() -> style.Picture:
    """Sectors of a warp's load over its stride, for float32 and float64."""
    strides = [1, 2, 4, 8, 16, 32]
    return stride_sweep(
        {
            "float32": [(s, min(32, 4 * s)) for s in strides],
            "float64": [(s, min(32, 8 * s)) for s in strides],
        },
        "sectors per request",
    )


if __name__ == "__main__":
    style.demo(sample)
