"""Bars, curves and timelines of an idea. What a run measured is drawn by `gpulab.plot`."""

from __future__ import annotations

from collections.abc import Sequence

from . import marks
from .part import Part, measure


def bars(rows: Sequence[tuple[str, float, str, str]], width: float = 340, height: float = 24) -> Part:
    """Horizontal bars: (name, length, words at its end, tone); lengths are to scale."""
    most = max(length for _, length, _, _ in rows)
    named = max(measure(name) for name, *_ in rows) + 10
    told = max(measure(words, 13) for _, _, words, _ in rows) + 8
    svg = ""
    for i, (name, length, words, tone) in enumerate(rows):
        y, long = i * (height + 8), max(width * length / most, 2)
        svg += marks.text(named - 10, y + height / 2 + 5, name, "end")
        svg += marks.rect(named, y, long, height, tone, 3)
        svg += marks.text(named + long + 8, y + height / 2 + 5, words, "small")
    return Part(named + width + told, len(rows) * (height + 8) - 8, svg)


def curve(
    lines: Sequence[tuple[str, Sequence[tuple[float, float]], str]],
    across: str,
    up: str,
    width: float = 400,
    height: float = 170,
    points: Sequence[tuple[float, float, str]] = (),
) -> Part:
    """Lines (name, points in 0…1 × 0…1, tone) over two axes; a name stands where its line ends."""
    left, told = 26.0, max(measure(name, 13) for name, _, _ in lines) + 10

    def place(x: float, y: float) -> marks.Place:
        return left + x * width, height * (1 - y) + 6

    svg = marks.line([(left, 6), (left, height + 6), (left + width, height + 6)], "axis")
    svg += marks.text(left + width / 2, height + 26, across, "middle small soft")
    words = marks.text(12, height / 2 + 10, up, "middle small soft")
    svg += f'<g transform="rotate(-90 12 {height / 2 + 6:g})">{words}</g>'
    for name, way, tone in lines:
        svg += marks.line([place(x, y) for x, y in way], f"{tone}-line")
        x, y = place(*way[-1])
        svg += marks.text(x + 8, y + 5, name, "small")
    for x, y, words in points:
        at = place(x, y)
        svg += marks.circle(*at, 5, "dot")
        long = measure(words, 13) + 12
        if at[0] + long > left + width:  # the name of a line may stand there
            end = max(at[0] + 4, left + 6 + long)
            corners = [place(*corner) for _, way, _ in lines for corner in way]
            high = min(y for x, y in [at, *corners] if end - long <= x <= end or (x, y) == at)
            svg += marks.text(end, high - 11, words, "end small")
        else:
            svg += marks.text(at[0] + 10, at[1] + 5, words, "small")
    return Part(left + width + told, height + 34, svg)


def timeline(
    rows: Sequence[tuple[str, Sequence[tuple[float, float, str, str]]]],
    width: float = 440,
    height: float = 28,
    across: str = "time",
    end: float = 0,
) -> Part:
    """Rows (name, spans), a span being (start, length, words, tone); all to the scale of the longest row."""
    whole = end or max(start + length for _, spans in rows for start, length, _, _ in spans)
    named = max(measure(name, 13) for name, _ in rows) + 10
    svg = ""
    for i, (name, spans) in enumerate(rows):
        y = i * (height + 6)
        svg += marks.text(named - 10, y + height / 2 + 5, name, "end small")
        for start, length, words, tone in spans:
            x, long = named + width * start / whole, width * length / whole
            svg += marks.rect(x + 0.75, y, long - 1.5, height, tone, 3)
            if words and measure(words, 11) <= long + 2:
                kind = "middle small" if measure(words, 13) <= long - 4 else "middle tiny"
                svg += marks.text(x + long / 2, y + height / 2 + 5, words, kind)
    low = len(rows) * (height + 6)
    svg += marks.arrow([(named, low + 4), (named + width, low + 4)])
    svg += marks.text(named + width, low + 22, across, "end small soft")
    return Part(named + width, low + 26, svg)
