"""Boxes with words, and arrows between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from . import marks
from .part import GAP, LINE, Part, column, lines, measure, row, wrapped

ARROW = 44  # pixels between two boxes of a flow


def box(words: str, tone: str = "plain", sub: str = "", width: float = 0, height: float = 0) -> Part:
    """A box with words in it, one line for each ``\\n``; `sub` is a smaller line below them."""
    said, small = words.split("\n"), sub.split("\n") if sub else []
    bold = 1.1 if small else 1.0
    text_wide = max([bold * measure(line) for line in said] + [measure(line, 13) for line in small])
    wide = max(width, text_wide + 22)
    tall = max(height, LINE * len(said) + 17 * len(small) + 16)
    y = (tall - LINE * len(said) - 17 * len(small)) / 2 + 15
    svg = marks.rect(0, 0, wide, tall, tone, 5)
    strong = "middle strong" if small else "middle"
    for line in said:
        svg += marks.text(wide / 2, y, line, strong)
        y += LINE
    for line in small:
        svg += marks.text(wide / 2, y - 2, line, "middle small")
        y += 17
    return Part(wide, tall, svg)


def code(source: Sequence[str], lit: int = -1, size: float = 12) -> Part:
    """Lines of a program; the one at `lit` is marked."""
    wide = max(measure(line, size, mono=True) for line in source) + 24
    tall, svg = size * 1.65, ""
    for i, line in enumerate(source):
        if i == lit:
            svg += marks.rect(1, 8 + i * tall, wide - 2, tall, "read", 2)
        words = marks.text(12, 8 + i * tall + size * 1.15, line, "mono")
        svg += words.replace('class="mono"', f'class="mono" style="font-size:{size:g}px"')
    height = len(source) * tall + 16
    return Part(wide, height, marks.rect(0, 0, wide, height, "plain", 5) + svg)


def label(words: str, width: float = 90) -> Part:
    """A name at the left of a row; names of one width end below one another."""
    return Part(width, 20, marks.text(width, 15, words, "end small strong"))


def note(words: str, width: float = 540, kind: str = "small soft", size: float = 13) -> Part:
    """A sentence without a box."""
    return lines(wrapped(words, width, size), kind, centred=True, size=size)


def arrow(
    label: str = "", length: float = ARROW, down: bool = False, tone: str = "", both: bool = False
) -> Part:
    """An arrow to the right, or `down`, with a word at it."""
    if down:
        svg = marks.arrow([(0, 2), (0, length - 2)], tone)
        svg += marks.arrow([(0, length - 2), (0, 2)], tone) if both else ""
        wide = measure(label, 13)
        words = marks.text(10, length / 2 + 5, label, "small soft") if label else ""
        return Part(2 * wide + 24, length, Part(0, 0, svg + words).at(wide + 12, 0))
    wide = max(length, measure(label, 13) + 14)
    svg = marks.arrow([(3, 20), (wide - 3, 20)], tone)
    svg += marks.arrow([(wide - 3, 20), (3, 20)], tone) if both else ""
    svg += marks.text(wide / 2, 12, label, "middle small soft") if label else ""
    return Part(wide, 40, svg)


def flow(*parts: Part, labels: Sequence[str] = (), down: bool = False, length: float = 0) -> Part:
    """Parts with an arrow from each to the next."""
    found: list[Part] = []
    for i, part in enumerate(parts):
        label = labels[i - 1] if 0 < i <= len(labels) else ""
        found += [arrow(label, length or (30 if down else ARROW), down), part] if i else [part]
    return column(*found, gap=2) if down else row(*found, gap=3)


def stack(rows: Sequence[tuple[str, str, str]], width: float = 540) -> Part:
    """Bars below one another, each with words, a tone and a remark at its right end."""
    found = []
    for words, tone, remark in rows:
        svg = marks.rect(0, 0, width, 38, tone, 4) + marks.text(12, 24, words, "strong")
        found.append(Part(width, 38, svg + marks.text(width - 12, 24, remark, "end small")))
    return column(*found, gap=5)


@dataclass(frozen=True)
class Edge:
    """An arrow from a node to another; `bend` moves its middle to the side, in pixels."""

    start: str
    end: str
    label: str = ""
    tone: str = ""
    dashed: bool = False
    bend: float = 0.0
    plain: bool = False  # without a head


def graph(
    nodes: Mapping[str, tuple[float, float, Part]],
    edges: Sequence[Edge],
    step: tuple[float, float] = (120, 74),
) -> Part:
    """Nodes with their centres at (column, row) of a lattice of `step` pixels, and edges between them."""
    centres = {name: (x * step[0], y * step[1]) for name, (x, y, _) in nodes.items()}
    parts = {name: part for name, (_, _, part) in nodes.items()}
    left = min(centres[n][0] - parts[n].width / 2 for n in parts)
    high = min(centres[n][1] - parts[n].height / 2 for n in parts)
    right = max(centres[n][0] + parts[n].width / 2 for n in parts)
    low = max(centres[n][1] + parts[n].height / 2 for n in parts)
    svg = ""
    for edge in edges:
        a, b = centres[edge.start], centres[edge.end]
        middle = ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
        if edge.bend:
            length = ((b[0] - a[0]) ** 2 + (b[1] - a[1]) ** 2) ** 0.5
            across = ((b[1] - a[1]) / length, -(b[0] - a[0]) / length)
            middle = (middle[0] + across[0] * edge.bend, middle[1] + across[1] * edge.bend)
        start = _edge_of(parts[edge.start], a, middle if edge.bend else b)
        end = _edge_of(parts[edge.end], b, middle if edge.bend else a)
        points = [start, *(marks.curved(start, middle, end) if edge.bend else ()), end]
        if edge.bend:
            top = marks.halfway(start, middle, end)
            left, right = (
                min(left, top[0]),
                max(right, top[0] + 8 + measure(edge.label, 13) * bool(edge.bend)),
            )
            high, low = min(high, top[1] - 20), max(low, top[1] + 6)
        kind = f"{edge.tone}-line" if edge.tone else "line"
        svg += (
            marks.line(points, kind, edge.dashed)
            if edge.plain
            else marks.arrow(points, edge.tone, edge.dashed)
        )
        if edge.label:
            x, y = marks.halfway(start, middle, end) if edge.bend else middle
            upright = abs(end[0] - start[0]) < 12
            svg += marks.text(
                x + 7 if upright else x,
                y + 4 if upright else y - 8,
                edge.label,
                "small" if upright else "middle small",
            )
    for name, part in parts.items():
        svg += part.at(centres[name][0] - part.width / 2, centres[name][1] - part.height / 2)
    return Part(right - left, low - high, Part(0, 0, svg).at(-left, -high))


def _edge_of(part: Part, centre: marks.Place, towards: marks.Place) -> marks.Place:
    """Where a line from the centre of a box leaves it."""
    dx, dy = towards[0] - centre[0], towards[1] - centre[1]
    if not dx and not dy:
        return centre
    scale = min(
        (part.width / 2 + 3) / abs(dx) if dx else float("inf"),
        (part.height / 2 + 3) / abs(dy) if dy else float("inf"),
    )
    return centre[0] + dx * min(scale, 1), centre[1] + dy * min(scale, 1)


__all__ = ["GAP", "Edge", "arrow", "box", "flow", "graph", "note", "stack"]
