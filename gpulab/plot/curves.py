"""Lines over a common axis: losses over steps, costs over sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from . import style

Pairs = Sequence[tuple[float, float]]
STYLES = ("-", "--", "-.", ":")


def curves(
    lines: Mapping[str, Pairs],
    over: str,
    unit: str,
    ax: Axes | None = None,
    *,
    levels: Mapping[str, float] | None = None,
    log: bool = False,
) -> style.Picture:
    """Draw each line through its (x, y) pairs with its name behind its last point.

    `over` names the x axis and `unit` the y axis; `levels` are dashed lines across, such as a least possible
    loss; `log` makes the y axis logarithmic. Raises NothingToDraw without a pair.
    """
    drawn = {name: list(pairs) for name, pairs in lines.items() if len(pairs)}
    if not drawn:
        raise style.NothingToDraw("there is nothing to draw: no line has a point")
    levels = levels or {}
    ax, given = style.begin(ax, 6.8, 3.4)
    if log:
        ax.set_yscale("log")
    for index, pairs in enumerate(drawn.values()):
        colour = style.SERIES[index % len(style.SERIES)]
        x, y = zip(*pairs, strict=True)
        ax.plot(x, y, color=colour, linestyle=STYLES[index % len(STYLES)], linewidth=2)
    right = max(x for pairs in drawn.values() for x, _ in pairs)
    ax.set_xlim(right=right)  # names stand outside, where no line runs through them
    for value in levels.values():
        ax.axhline(value, color=style.INK, linewidth=1.2, linestyle=(0, (1, 2)))
    if not log:
        ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    ends = {name: pairs[-1] for name, pairs in drawn.items()}
    ends |= {name: (right, value) for name, value in levels.items()}
    _names(ax, ends)
    ax.set_xlabel(over, color=style.INK)
    ax.set_ylabel(unit, color=style.INK)
    said = [f"{name} ends at {pairs[-1][1]:,.4g}" for name, pairs in drawn.items()]
    said += [f"{name} is {value:,.4g}" for name, value in levels.items()]
    return style.finish(ax, f"{unit[:1].upper()}{unit[1:]} over {over}: {'; '.join(said)}.", given)


def _names(ax: Axes, ends: Mapping[str, tuple[float, float]]) -> None:
    """Write each name to the right of its end, pushed up where two would overlap."""
    points = ax.transData.transform(list(ends.values()))
    figure = ax.get_figure(root=True)
    assert figure is not None
    apart = 1.25 * style.TEXT * figure.dpi / 72  # a line of text, in pixels
    free = float("-inf")
    for (name, end), (_, y) in sorted(zip(ends.items(), points, strict=True), key=lambda each: each[1][1]):
        lifted = max(y, free)
        free = lifted + apart
        ax.annotate(
            name, end, xytext=(6, (lifted - y) * 72 / figure.dpi), textcoords="offset points", va="center",
            fontsize=style.TEXT, color=style.INK, annotation_clip=False,
        )  # fmt: skip


def sample() -> style.Picture:
    """Two losses and the least possible one."""
    steps = range(0, 101, 10)
    return curves(
        {
            "small": [(s, 0.5 + 2 / (1 + s / 10)) for s in steps],
            "large": [(s, 0.45 + 2 / (1 + s / 5)) for s in steps],
        },
        "steps",
        "loss, nats",
        levels={"least possible": 0.4},
    )


if __name__ == "__main__":
    style.demo(sample)
