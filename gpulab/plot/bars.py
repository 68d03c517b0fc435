"""One count for several kernels beside a budget."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes

from . import style


def bars(
    counts: Mapping[str, float],
    unit: str,
    ax: Axes | None = None,
    *,
    budget: float | None = None,
    more_is_better: bool = False,
    log: bool = False,
) -> style.Picture:
    """Draw one bar per name. Bars that miss the budget are hatched; the budget is a dashed line.

    `unit` names the axis, for example ``sectors per request``. `log` suits counts that differ by 20 × or
    more. Raises ValueError without a count.
    """
    if not counts:
        raise ValueError("there is nothing to compare: no count was given")
    ax, given = style.begin(ax, 6.4, 1.0 + 0.45 * len(counts))
    start = 0.0
    if log:
        ax.set_xscale("log")
        start = min(value for value in (*counts.values(), budget or 1) if value > 0) / 2
    missed = []
    for row, (name, value) in enumerate(counts.items()):
        misses = budget is not None and (value < budget if more_is_better else value > budget)
        if misses:
            missed.append(name)
        fill = style.BAD if misses else style.GOOD
        style.cell(ax, start, row - 0.3, "", fill, width=max(value - start, 0), height=0.6, wrong=misses)
        ax.annotate(
            f"{value:,.4g}", (max(value, start), row), xytext=(5, 0), textcoords="offset points", va="center",
            fontsize=style.TEXT, color=style.INK,
        )  # fmt: skip
    highest = max([*counts.values(), budget or 0]) or 1
    ax.set_xlim(start, highest * (1.6 if log else 1.12))
    ax.set_ylim(len(counts) - 0.5, -0.75 if budget is not None else -0.5)
    ax.set_yticks(range(len(counts)), list(counts))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(unit, color=style.INK)
    if budget is not None:
        ax.axvline(budget, color=style.INK, linewidth=1.2, linestyle="--")
        ax.annotate(
            f"budget {budget:,g}", (budget, -0.72), xytext=(4, 0), textcoords="offset points", va="top",
            fontsize=8, color=style.INK,
        )  # fmt: skip
    said = ", ".join(f"{name} {value:,.4g}" for name, value in counts.items())
    verdict = ""
    if missed:
        verdict = f"; {' and '.join(missed)} miss{'es' if len(missed) == 1 else ''} the budget of {budget:,g}"
    elif budget is not None:
        verdict = f"; all within the budget of {budget:,g}"
    return style.finish(ax, f"{unit[:1].upper()}{unit[1:]}: {said}{verdict}.", given)


def sample() -> style.Picture:
    """Store sectors of a transpose, before and after."""
    return bars({"naive": 32, "yours": 4, "a plain copy": 4}, "sectors per request", budget=4)


if __name__ == "__main__":
    style.demo(sample)
