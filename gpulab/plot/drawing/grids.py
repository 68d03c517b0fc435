"""Cells: of arrays, masks, tiles, pages, bit patterns; and the lanes of a warp."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import marks
from .part import Part, measure

# What a letter of a pattern means; a blank leaves a gap.
CODES = {"r": "read", "w": "write", "g": "good", "s": "wait", "x": "bad", ".": "plain", "o": "off", " ": ""}


def cells(
    pattern: Sequence[str],
    texts: Sequence[Sequence[str]] | Mapping[tuple[int, int], str] = (),
    size: float = 26,
    height: float = 0,
    left: Sequence[str] = (),
    above: Sequence[str] = (),
    gap: float = 2,
) -> Part:
    """A grid of cells: a string for each row, a letter of `CODES` for each cell.

    `texts` are rows of words in the cells, or words by (row, column). `left` names rows, `above` columns.
    """
    tall = height or size
    named = max((measure(name, 13) for name in left), default=-8.0) + 8
    top = 18.0 if above else 0.0
    svg = "".join(
        marks.text(named + j * (size + gap) + size / 2, 12, name, "middle small soft")
        for j, name in enumerate(above)
    )
    for i, codes in enumerate(pattern):
        y = top + i * (tall + gap)
        if i < len(left):
            svg += marks.text(named - 8, y + tall / 2 + 5, left[i], "end small")
        for j, code in enumerate(codes):
            x = named + j * (size + gap)
            if CODES[code]:
                svg += marks.rect(x, y, size, tall, CODES[code], min(3, size / 6))
            words = _word(texts, i, j)
            if words:
                kind = "middle small" if size >= 24 else "middle tiny"
                svg += marks.text(x + size / 2, y + tall / 2 + (5 if size >= 24 else 4), words, kind)
    columns = max(map(len, pattern))
    return Part(named + columns * (size + gap) - gap, top + len(pattern) * (tall + gap) - gap, svg)


def _word(texts: Sequence[Sequence[str]] | Mapping[tuple[int, int], str], i: int, j: int) -> str:
    if isinstance(texts, Mapping):
        return texts.get((i, j), "")
    return texts[i][j] if i < len(texts) and j < len(texts[i]) else ""


def strip(words: Sequence[str], tones: str, size: float = 40, height: float = 30) -> Part:
    """One row of cells with words: ``strip(["a", "b"], "rw")``."""
    return cells([tones], [words], size, height)


def matrix(
    name: str,
    rows: int,
    columns: int,
    tone: str = ".",
    size: float = 16,
    marked: Mapping[tuple[int, int], str] | None = None,
) -> Part:
    """A matrix with its name below; `marked` has letters of `CODES` by (row, column)."""
    marked = marked or {}
    pattern = ["".join(marked.get((i, j), tone) for j in range(columns)) for i in range(rows)]
    body = cells(pattern, size=size, gap=1.5)
    label = marks.text(body.width / 2, body.height + 18, name, "middle small")
    return Part(max(body.width, measure(name, 13)), body.height + 24, body.svg + label)


def lanes(active: str = "1" * 32, size: float = 12, gap: float = 3) -> Part:
    """The lanes of a warp: full circles for 1, hollow ones for 0, squares for lanes that wait (2)."""
    svg = ""
    for i, kind in enumerate(active):
        x = i * (size + gap) + size / 2
        if kind == "2":
            svg += marks.rect(x - size / 2, 0, size, size, "wait", 2)
        else:
            svg += marks.circle(x, size / 2, size / 2 - 1, "dot" if kind == "1" else "hollow")
    return Part(len(active) * (size + gap) - gap, size, svg)


def bits(fields: Sequence[tuple[str, int, str]], size: float = 15, named: bool = True) -> Part:
    """A number's bits, its fields as (name, bits, tone)."""
    svg, x = "", 0.0
    for name, count, tone in fields:
        for k in range(count):
            svg += marks.rect(x + k * size, 0, size - 1.5, 24, tone, 2)
        if named:
            svg += marks.text(x + count * size / 2, 40, name, "middle tiny" if count < 3 else "middle small")
        x += count * size
    return Part(x - 1.5, 46 if named else 24, svg)
