"""Parts, and how they are put together."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from . import marks, palette

WIDTH = 600
MARGIN = 18
GAP = 14
SMALLEST = 0.86  # of its size a drawing may be: then its text is 13 pixels high
LINE = 20  # pixels from one line of text to the next


class TooWide(ValueError):
    """A drawing does not fit its card; the message says by how much."""


@dataclass(frozen=True)
class Part:
    """Marks in a box of `width` × `height` pixels whose upper left corner is (0, 0)."""

    width: float
    height: float
    svg: str

    def at(self, x: float, y: float) -> str:
        """The marks, moved."""
        if not x and not y:
            return self.svg
        return f'<g transform="translate({marks.number(x)} {marks.number(y)})">{self.svg}</g>'


def measure(words: str, size: float = 15, mono: bool = False) -> float:
    """About how wide words are; fonts differ by a few per cent."""
    return len(words) * size * (0.62 if mono else 0.54)


def row(*parts: Part, gap: float = GAP, align: str = "middle") -> Part:
    """Parts from left to right; `align` is ``top``, ``middle`` or ``bottom``."""
    high = max(part.height for part in parts)
    found, x = [], 0.0
    for part in parts:
        y = {"top": 0.0, "middle": (high - part.height) / 2, "bottom": high - part.height}[align]
        found.append(part.at(x, y))
        x += part.width + gap
    return Part(x - gap, high, "".join(found))


def column(*parts: Part, gap: float = GAP, align: str = "middle") -> Part:
    """Parts from top to bottom; `align` is ``left`` or ``middle``."""
    wide = max(part.width for part in parts)
    found, y = [], 0.0
    for part in parts:
        found.append(part.at((wide - part.width) / 2 if align == "middle" else 0.0, y))
        y += part.height + gap
    return Part(wide, y - gap, "".join(found))


def lines(words: Sequence[str], kind: str = "", centred: bool = False, size: float = 15) -> Part:
    """Lines of text."""
    wide = max(measure(line, size, "mono" in kind) for line in words)
    step = size * 1.35
    x = wide / 2 if centred else 0.0
    classes = f"{kind} middle" if centred else kind
    svg = "".join(marks.text(x, size + i * step, line, classes) for i, line in enumerate(words))
    return Part(wide, step * len(words), svg)


def titled(title: str, part: Part) -> Part:
    """A part with a heading above it."""
    return column(lines([title], "strong", centred=True), part, gap=8)


def under(part: Part, words: str, width: float = 0) -> Part:
    """A part with a sentence below it, broken where the part, or `width`, ends."""
    room = max(width or part.width, 120)
    return column(part, lines(wrapped(words, room, 13), "small soft", centred=True, size=13), gap=8)


def wrapped(words: str, width: float, size: float = 15) -> list[str]:
    return textwrap.wrap(words, max(int(width / (size * 0.54)), 8), break_long_words=False)


def page(part: Part, alt: str) -> str:
    """The part in the middle of a card, as the text of an SVG file; `alt` says in words what to see.

    What is a little too wide is drawn a little smaller. Raises TooWide for what would become too small to be
    read, and ValueError without words.
    """
    if not alt.strip():
        raise ValueError("a drawing needs words for those who do not see it")
    room = WIDTH - 2 * MARGIN
    scale = min(1.0, room / part.width)
    if scale < SMALLEST:
        raise TooWide(f"the drawing is {part.width:.0f} pixels wide; {room / SMALLEST:.0f} fit on a card")
    height = round(part.height * scale) + 2 * MARGIN
    said = escape(alt, quote=True)
    card = marks.rect(0.5, 0.5, WIDTH - 1, height - 1, "card", 8)
    inside = part.at(0, 0) if scale == 1 else f'<g transform="scale({scale:.3f})">{part.svg}</g>'
    placed = Part(0, 0, inside).at((WIDTH - part.width * scale) / 2, MARGIN)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{marks.number(height)}"'
        f' viewBox="0 0 {WIDTH} {marks.number(height)}" role="img" aria-label="{said}">'
        f"<style>{palette.css()}</style>{card}{placed}</svg>\n"
    )
