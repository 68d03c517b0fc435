"""What happens when: one row for each stream, engine or thing that can be busy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from . import readings, style
from .records import Span


def timeline(
    spans: Sequence[Span], unit: str = "µs", ax: Axes | None = None, *, caption: str = ""
) -> style.Picture:
    """Draw spans of time. Rows are in the order in which they first occur, and each kind has its colour.

    Spans of kind ``wait`` are hollow and dashed: time in which nothing useful happens.
    The caption says in one sentence what to see; without one it names the row that is busy longest.
    Raises NothingToDraw without a span.
    """
    if not spans:
        raise style.NothingToDraw("there is nothing to draw: no span was given")
    rows = list(dict.fromkeys(span.row for span in spans))
    kinds = [kind for kind in dict.fromkeys(span.kind for span in spans) if kind != "wait"]
    end = max(span.stop for span in spans)
    ax, given = style.begin(ax, 7.6, 1.0 + 0.45 * len(rows))
    ax.set_xlim(0, end * 1.01 or 1)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    for span in spans:
        wait = span.kind == "wait"
        fill = None if wait else style.SERIES[kinds.index(span.kind) % len(style.SERIES)]
        length = span.stop - span.start
        fits = len(span.label) * 0.013 * end < length
        style.cell(
            ax, span.start, rows.index(span.row) - 0.32, span.label if fits else "", fill,
            width=length, height=0.64, dashed=wait, size=8,
        )  # fmt: skip
        what = f"{span.row}: {span.label or span.kind}"
        times = f"{style.number(span.start)} to {style.number(span.stop)}: {_amount(length, unit)}"
        readings.say(ax, span.start, rows.index(span.row) - 0.32, length, 0.64, f"{what}\n{times}")
    ax.set_yticks(range(len(rows)), rows)
    if all(isinstance(time, int) for span in spans for time in (span.start, span.stop)):
        ax.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(f"time, {unit}", color=style.INK)
    if caption:
        return style.finish(ax, caption, given)
    busy = {row: sum(s.stop - s.start for s in spans if s.row == row and s.kind != "wait") for row in rows}
    return style.finish(ax, f"{', '.join(rows)} over {_amount(end, unit)}: {_busiest(busy, unit)}.", given)


def _busiest(busy: Mapping[str, float], unit: str) -> str:
    """Which row is busy longest; where several are, none is singled out."""
    longest = max(busy.values())
    rows = [row for row, time in busy.items() if math.isclose(time, longest)]
    amount = _amount(longest, unit)
    if len(rows) == 1:
        return f"{rows[0]} is busy longest, {amount}"
    return f"{'each is' if len(rows) == len(busy) else f'{len(rows)} of them are'} busy for {amount}"


def _amount(time: float, unit: str) -> str:
    """``9 µs``, ``3 stages``, ``1 stage``: a unit that is a word loses its s."""
    text = f"{time:,.4g}"
    return f"{text} {unit.removesuffix('s') if text == '1' and len(unit) > 3 else unit}"


def sample() -> style.Picture:
    """Two streams that overlap a copy with a kernel."""
    return timeline(
        [
            Span("copy in", 0, 4, "tile 1", "tile 1"),
            Span("copy in", 4, 8, "tile 2", "tile 2"),
            Span("kernel", 0, 4, "waits", "wait"),
            Span("kernel", 4, 9, "tile 1", "tile 1"),
            Span("kernel", 9, 14, "tile 2", "tile 2"),
            Span("copy out", 9, 12, "tile 1", "tile 1"),
            Span("copy out", 14, 17, "tile 2", "tile 2"),
        ]
    )


if __name__ == "__main__":
    style.demo(sample)
