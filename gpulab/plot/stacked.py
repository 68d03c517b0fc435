"""What fills a memory: parts of several totals in one unit, beside what there is room for."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes

from . import readings, style


def stacked(
    parts: Mapping[str, Mapping[str, float]],
    unit: str,
    caption: str,
    ax: Axes | None = None,
    *,
    limits: Mapping[str, float] | None = None,
) -> style.Picture:
    """Draw a bar for each key of `parts`, made of its parts, at most four, with the total at its end.

    All bars have the same parts in the same order. `limits` are vertical lines by name. The caption says in
    one sentence what to see. Raises NothingToDraw without a bar, or where nothing is larger than 0.
    """
    totals = [sum(of.values()) for of in parts.values()]
    if max(totals, default=0) <= 0:
        raise style.NothingToDraw("there is nothing to draw: no part is larger than 0")
    ax, given = style.begin(ax, 7.2, 1.6 + 0.38 * len(parts))
    named = list(next(iter(parts.values())))
    for row, ((key, of), total) in enumerate(zip(parts.items(), totals, strict=True)):
        left = 0.0
        for name, colour in zip(named, style.SERIES, strict=False):
            style.cell(ax, left, row - 0.3, "", colour, width=of[name], height=0.6)
            part = 100 * of[name] / total if total else 0
            words = f"{key}\n{name}: {style.number(of[name])} {unit}, {part:.3g} % of the bar"
            readings.say(ax, left, row - 0.3, of[name], 0.6, words)
            left += of[name]
        ax.annotate(
            style.number(round(total, 1)), (total, row), xytext=(5, 0), textcoords="offset points",
            va="center", fontsize=style.TEXT, color=style.INK,
        )  # fmt: skip
    highest = max([*totals, *(limits or {}).values()])
    for place, (name, colour) in enumerate(zip(named, style.SERIES, strict=False)):
        at = 1.12 * highest * place / len(named)
        style.cell(ax, at, -1.9, "", colour, width=0.02 * highest, height=0.4)
        ax.annotate(
            name, (at + 0.03 * highest, -1.7), va="center", fontsize=8, color=style.INK, annotation_clip=False
        )
    for name, limit in (limits or {}).items():
        ax.plot((limit, limit), (-0.6, len(parts) - 0.5), color=style.INK, linewidth=1.2, linestyle="--")
        ax.annotate(
            f"{name} {style.number(limit)}", (limit, -0.7), ha="center", va="bottom", fontsize=8,
            color=style.INK,
        )  # fmt: skip
    ax.set_xlim(0, 1.12 * highest)
    ax.set_ylim(len(parts) - 0.5, -2.0)
    ax.set_yticks(range(len(parts)), list(parts))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(unit, color=style.INK)
    return style.finish(ax, caption, given)


def sample() -> style.Picture:
    """A made-up model for one user and for eight."""
    return stacked(
        {"1 user": {"weights": 16, "cache": 1}, "8 users": {"weights": 16, "cache": 8}},
        "GB",
        "The cache grows with the users, the weights do not.",
        limits={"small": 20, "large": 32},
    )


if __name__ == "__main__":
    style.demo(sample)
