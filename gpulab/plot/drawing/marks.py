"""The strings that drawings consist of. Coordinates are pixels, y grows downwards."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import hypot

Place = tuple[float, float]


def number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """Words with their base line at `y`; `kind` are classes such as ``middle small soft``."""
    return f'<text x="{number(x)}" y="{number(y)}" class="{kind}">{escape(words, quote=False)}</text>'


def rect(x: float, y: float, width: float, height: float, kind: str, radius: float = 3) -> str:
    hatch = ""
    if kind == "bad":  # a sign that is no colour
        hatch = f'<path class="bad-line" d="{_stripes(x, y, width, height)}" stroke-opacity=".35"/>'
    return (
        f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
        f' rx="{number(radius)}" class="{kind}"/>{hatch}'
    )


def _stripes(x: float, y: float, width: float, height: float) -> str:
    """Diagonals, 8 pixels apart, inside a rectangle."""
    found = []
    for start in range(8, int(width + height), 8):
        x1, y1 = (x + start, y) if start <= width else (x + width, y + start - width)
        x2, y2 = (x, y + start) if start <= height else (x + start - height, y + height)
        found.append(f"M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}")
    return "".join(found)


def circle(x: float, y: float, radius: float, kind: str) -> str:
    fill = ' fill="none"' if kind == "hollow" else ""
    return f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" class="{kind}"{fill}/>'


def line(points: Sequence[Place], kind: str = "line", dashed: bool = False) -> str:
    way = "L".join(f"{number(x)} {number(y)}" for x, y in points)
    dash = ' stroke-dasharray="4 3"' if dashed else ""
    return f'<path d="M{way}" class="{kind}"{dash}/>'


def curved(start: Place, through: Place, end: Place) -> list[Place]:
    """Points of the parabola from `start` to `end` that leans towards `through`, without its ends."""
    return [_on_curve(start, through, end, k / 12) for k in range(1, 12)]


def halfway(start: Place, through: Place, end: Place) -> Place:
    """The middle of that parabola."""
    return _on_curve(start, through, end, 0.5)


def _on_curve(a: Place, m: Place, b: Place, t: float) -> Place:
    x, y = ((1 - t) ** 2 * p + 2 * t * (1 - t) * q + t**2 * r for p, q, r in zip(a, m, b, strict=True))
    return x, y


def arrow(points: Sequence[Place], tone: str = "", dashed: bool = False) -> str:
    """A line with a head at its last point; `tone` colours both."""
    (x1, y1), (x2, y2) = points[-2:]
    length = hypot(x2 - x1, y2 - y1) or 1.0
    dx, dy = (x2 - x1) / length, (y2 - y1) / length
    back = (x2 - 8 * dx, y2 - 8 * dy)
    left, right = (back[0] + 4 * dy, back[1] - 4 * dx), (back[0] - 4 * dy, back[1] + 4 * dx)
    head = "L".join(f"{number(x)} {number(y)}" for x, y in ((x2, y2), left, right))
    shaft = line([*points[:-1], back], f"{tone}-line" if tone else "line", dashed)
    return (
        shaft + f'<polygon points="{head.replace("L", " ")}" class="{f"{tone}-head" if tone else "head"}"/>'
    )
