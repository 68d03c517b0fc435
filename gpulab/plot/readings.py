"""What a still figure says where somebody points at it, or steps through it with the arrow keys.

Over the image lie radio buttons without a face, one for each reading. The browser moves among them and a
style sheet shows their words, so a figure needs neither a script nor a kernel for this. Where a page takes
the style sheet away, they are left out.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

STRIPS = 72  # of a chart's width: what is nearer together nobody can point at apart
MOST = 400  # readings of one figure; with more it would be heavier than its image
STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Reading:
    """Words for a box of the axes: left, right, and top and bottom or the whole height. With `at`, a line
    stands there, with a dot for each of `dots`: its height in the axes, and its colour."""

    ax: Axes
    left: float
    right: float
    words: str
    heights: tuple[float, float] | None = None
    at: float | None = None
    dots: tuple[tuple[float, str], ...] = ()


def of(figure: Figure) -> list[Reading]:
    """The readings of a figure so far."""
    found: list[Reading] = figure.__dict__.setdefault("readings", [])
    return found


def say(ax: Axes, x: float, y: float, width: float, height: float, words: str) -> None:
    """Have a box say these words, line by line. It has data coordinates, as in `style.cell`."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    of(figure).append(Reading(ax, x, x + width, words, (y, y + height)))


def say_curves(
    ax: Axes,
    curves: Mapping[str, Sequence[tuple[float, float]]],
    colours: Sequence[str],
    x: str,
    y: str,
    log: bool = False,
) -> None:
    """Have each place along x say what the curves are there: at points of their own, at none in between."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    values = {name: dict(points) for name, points in curves.items()}
    along = {place for points in values.values() for place in points if not log or place > 0}
    if not along:
        return
    scale = math.log10 if log else float
    groups: list[list[float]] = []
    room = (scale(max(along)) - scale(min(along))) / STRIPS
    for place in sorted(along):
        if groups and scale(place) - scale(groups[-1][0]) < room:
            groups[-1].append(place)
        else:
            groups.append([place])
    places = [
        max(group, key=lambda place: sum(place in of_one for of_one in values.values())) for group in groups
    ]
    places.sort()
    for index, place in enumerate(places):
        near = [scale(other) for other in places[max(index - 1, 0) : index + 2]]
        here = scale(place)
        half = max(near[-1] - near[0], 1e-12) / max(len(near) - 1, 1) / 2
        left = (here + near[0]) / 2 if index else here - half
        right = (here + near[-1]) / 2 if index < len(places) - 1 else here + half
        said = [f"{x}: {_plain(place)}"]
        dots = []
        for (name, of_one), colour in zip(values.items(), colours, strict=False):
            if place in of_one:
                said.append(f"{name if len(values) > 1 else y}: {_plain(of_one[place])}")
                dots.append((of_one[place], colour))
        back = (lambda value: 10.0**value) if log else float
        words = "\n".join(said)
        of(figure).append(Reading(ax, back(left), back(right), words, None, place, tuple(dots)))


def _plain(value: float) -> str:
    """A number as its axis has it: years without a comma, counts with one."""
    value = float(value)
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}" if abs(value) >= 10_000 else str(int(value))
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def over(image: str, figure: Figure) -> str:
    """The image's element, and over it what it says. The figure has been drawn as the image shows it."""
    found = [button for reading in of(figure)[:MOST] if (button := _button(reading, figure))]
    if not found:
        return image
    name = "r" + hashlib.sha256("".join(found).encode()).hexdigest()[:10]
    buttons = "".join(button.replace("<input", f'<input type="radio" name="{name}"', 1) for button in found)
    return (
        f'<style>{STYLE}</style><div class="gpulab-read">{image}<span style="display:none" role="radiogroup"'
        f' aria-label="values in the figure">{buttons}</span></div>'
    )


def _button(reading: Reading, figure: Figure) -> str:
    """A reading as an element without its name; nothing for one outside its axes."""
    ax, paper = reading.ax, figure.bbox
    frame = ax.get_window_extent()
    low, high = reading.heights or (0.0, 0.0)
    corners = ax.transData.transform([(reading.left, low or 1), (reading.right, high or 1)])
    if reading.heights:
        corners = ax.transData.transform([(reading.left, low), (reading.right, high)])
    else:
        corners[:, 1] = frame.y0, frame.y1
    x0, x1 = sorted(min(max(x, frame.x0), frame.x1) for x in corners[:, 0])
    y0, y1 = sorted(min(max(y, frame.y0), frame.y1) for y in corners[:, 1])
    if not (math.isfinite(x0 + x1 + y0 + y1) and x1 - x0 > 0.1 and y1 - y0 > 0.1):
        return ""
    look = (
        f"left:{100 * x0 / paper.width:.2f}%;top:{100 * (1 - y1 / paper.height):.2f}%;"
        f"width:{100 * (x1 - x0) / paper.width:.2f}%;height:{100 * (y1 - y0) / paper.height:.2f}%"
    )
    kinds = ["left"] if x0 + x1 > paper.width else []
    if x1 - x0 > paper.width / 3:  # beside it there is no room for the words
        kinds = ["in"]
    if y0 + y1 < paper.height and reading.heights:
        kinds.append("up")
    if reading.at is not None:
        kinds.append("at")
        dots = [ax.transData.transform((reading.at, value)) for value, _ in reading.dots]
        look += f";--x:{100 * (ax.transData.transform((reading.at, 1))[0] - x0) / (x1 - x0):.0f}%"
        painted = ",".join(
            f"radial-gradient(circle at 50% {100 * (y1 - y) / (y1 - y0):.1f}%,{colour} 4px,#0000 4.7px)"
            for (_, y), (_, colour) in zip(dots, reading.dots, strict=True)
            if math.isfinite(y)
        )
        look += f";--m:{painted}" if painted else ""
    shown = f' class="{" ".join(kinds)}"' if kinds else ""
    shown += ' data-lm-suppress-shortcuts=""'  # or JupyterLab would go to another cell
    return f'<input{shown} aria-label="{escape(reading.words).replace(chr(10), "&#10;")}" style="{look}">'
