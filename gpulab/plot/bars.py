"""One count for several kernels beside a budget."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from . import readings, style


def bars(
    counts: Mapping[str, float],
    unit: str,
    ax: Axes | None = None,
    *,
    budget: float | None = None,
    more_is_better: bool = False,
    log: bool = False,
    caption: str = "",
) -> style.Picture:
    """Draw one bar per name. Bars that miss the budget are hatched; the budget is a dashed line.

    `unit` names the axis, for example ``sectors per request``. `log` suits counts that differ by 20 × or
    more: it draws dots, crosses where the budget is missed, because the length of a bar means nothing there.
    The caption says in one sentence what to see; without one it says which is least and which is most. Raises
    NothingToDraw without a count, or where one is None: a report's word for what did not happen.
    """
    if not counts:
        raise style.NothingToDraw("there is nothing to compare: no count was given")
    if missing := [name for name, value in counts.items() if value is None]:
        raise style.NothingToDraw(
            f"there is no count for {' and '.join(missing)}: the run did nothing of this kind"
        )
    ax, given = style.begin(ax, 6.4, 1.0 + 0.45 * len(counts))
    shown = [value for value in (*counts.values(), *([] if budget is None else [budget])) if value > 0]
    highest = max(shown, default=1)
    start = 0.0
    if log:
        ax.set_xscale("log")
        start = 10.0 ** (math.ceil(math.log10(min(shown, default=1))) - 1)  # the power of ten below all bars
    missed = []
    for row, (name, value) in enumerate(counts.items()):
        misses = budget is not None and (value < budget if more_is_better else value > budget)
        if misses:
            missed.append(name)
        fill = style.BAD if misses else style.GOOD
        if log:  # a bar's length would depend on where the axis happens to start
            ax.plot((start, max(value, start)), (row, row), color=style.FAINT, linewidth=1, zorder=1)
            if value > 0:
                ax.plot(value, row, marker="X" if misses else "o", color=fill, markersize=7, zorder=2)
        else:
            style.cell(ax, start, row - 0.3, "", fill, width=max(value - start, 0), height=0.6, wrong=misses)
        readings.say(ax, start, row - 0.45, 10 * highest, 0.9, _said(name, value, counts, unit, budget))
        where = _label_at(max(value, start), budget, start, highest, log)
        ax.annotate(
            style.number(value), (where, row), xytext=(8 if log else 5, 0), textcoords="offset points",
            va="center", fontsize=style.TEXT, color=style.INK,
        )  # fmt: skip
    ax.set_xlim(start, highest * (1.6 if log else 1.12))
    ax.set_ylim(len(counts) - 0.5, -0.75 if budget is not None else -0.5)
    ax.set_yticks(range(len(counts)), list(counts))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(unit, color=style.INK)
    if not log:
        if all(isinstance(value, int) for value in counts.values()):
            ax.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
        ax.xaxis.set_major_formatter(lambda value, _: style.number(value))
        _thin_out(ax)
    verdict = ""
    if budget is not None:
        limit = style.number(budget)
        ax.axvline(budget, color=style.INK, linewidth=1.2, linestyle="--")
        ax.annotate(
            f"budget {limit}", (budget, -0.72), xytext=(4, 0), textcoords="offset points", va="top",
            fontsize=8, color=style.INK,
        )  # fmt: skip
        miss = "misses" if len(missed) == 1 else "miss"
        verdict = (
            f"; {' and '.join(missed)} {miss} the budget of {limit}" if missed else "; all within budget"
        )
    return style.finish(ax, caption or f"{_as_start(unit)}: {_spread(counts)}{verdict}.", given)


def _said(name: str, value: float, counts: Mapping[str, float], unit: str, budget: float | None) -> str:
    """A bar in words: its count, and how it compares with the budget or with the smallest."""
    least = min(counts, key=counts.__getitem__)
    words = f"{name}\n{style.number(value)} {unit}"
    if budget:
        return f"{words}\n{value / budget:.3g} × the budget"
    if counts[least] > 0 and value > counts[least]:
        return f"{words}\n{value / counts[least]:.3g} × {least}"
    return words


def _thin_out(ax: Axes) -> None:
    """Fewer numbers along the axis where long names leave it so short that they would touch."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    for most in (6, 4, 3, 2):
        figure.draw_without_rendering()
        left, right = ax.get_window_extent().intervalx
        boxes = (label.get_window_extent() for label in ax.get_xticklabels() if label.get_text())
        inside = (box for box in boxes if left - 1 <= (box.x0 + box.x1) / 2 <= right + 1)
        along = sorted(inside, key=lambda box: box.x0)
        if all(one.x1 + 4 < other.x0 for one, other in pairwise(along)):
            return
        ax.xaxis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10]))


def _spread(counts: Mapping[str, float]) -> str:
    """What the bars are to one another; their numbers stand beside them."""
    low, high = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
    least, most = counts[low], counts[high]
    if least == most:
        return f"{low} {style.number(least)}" if len(counts) == 1 else f"all have {style.number(least)}"
    if least <= 0:
        return f"{high} has the most, {style.number(most)}, and {low} the least, {style.number(least)}"
    ratio = round(most / least, 1) if most < 100 * least else float(f"{most / least:.2g}")
    return f"the largest, {high}, is {style.number(ratio)} times the smallest, {low}"


def _as_start(unit: str) -> str:
    """The unit at the start of a sentence. A short one such as ms is a symbol, and its letters stay."""
    return f"In {unit}" if len(unit.split()[0]) <= 2 else f"{unit[:1].upper()}{unit[1:]}"


def _label_at(end: float, budget: float | None, start: float, highest: float, log: bool) -> float:
    """Where a bar's number starts: behind the bar, or behind the budget's line where it would cross that."""
    if budget is None or budget <= end:
        return end
    gap = math.log(budget / end) / math.log(highest / start) if log else (budget - end) / highest
    return budget if gap < 0.2 else end


def sample() -> style.Picture:
    """Store sectors of a transpose, before and after."""
    return bars({"naive": 32, "yours": 4, "a plain copy": 4}, "sectors per request", budget=4)


if __name__ == "__main__":
    style.demo(sample)
