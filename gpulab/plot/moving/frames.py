"""A drawing and what changes in it from frame to frame: schedules, tiles, rings, cells that are wrong.

Python draws and decides; the script only shows. Marks have *kinds*, classes of `marks.css`, whose colours are
those of `meanings`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import wrap
from typing import Any

from . import svg
from .figure import Figured, Moving

WIDTH = 720  # pixels of a drawing, if it is not told


@dataclass(frozen=True)
class Mark:
    """A box (x, y, width, height), text (x, y), dot (x, y, radius) or path (its way). `title` is shown on
    hover; a click goes to `frame`, if there is one."""

    shape: str
    at: tuple[Any, ...]
    kind: str
    words: str = ""
    title: str = ""
    frame: int | None = None
    panel: int = 0

    def record(self) -> dict[str, Any]:
        """JSON-able."""
        more = {"words": self.words, "title": self.title, "frame": self.frame, "panel": self.panel or None}
        at = [round(a, 1) if isinstance(a, float) else a for a in self.at]
        found = {"shape": self.shape, "at": at, "kind": self.kind}
        return found | {k: v for k, v in more.items() if v not in ("", None)}

    def svg(self, kind: str, words: str) -> str:
        """As part of an image."""
        if self.shape == "path":
            return svg.path(self.at[0], kind)
        x, y, *more = self.at
        if self.shape == "text":
            return svg.text(x, y, words, kind)
        if self.shape == "dot":
            return svg.lane(x, y, kind, more[0])
        width, height, radius = (*more, 3)[:3]
        return svg.box(x, y, width, height, kind, radius)


@dataclass(frozen=True)
class Frame:
    """A frame: what happens in it, a sentence, and the marks (by their numbers) whose kind or words differ
    from the drawing's."""

    caption: str
    kinds: Mapping[int, str] = field(default_factory=dict)
    words: Mapping[int, str] = field(default_factory=dict)


class Drawing:
    """Marks on one or several panels, which stand beside each other where there is room. Each method that
    adds a mark returns its number; `height` is that of the panel which is drawn on."""

    def __init__(self, width: float = WIDTH) -> None:
        self.panels: list[list[float]] = [[width, 0.0]]
        self.marks: list[Mark] = []

    @property
    def width(self) -> float:
        return self.panels[-1][0]

    @property
    def height(self) -> float:
        return self.panels[-1][1]

    def panel(self, width: float) -> None:
        """Go on to draw on a panel of its own."""
        self.panels.append([width, 0.0])

    def _add(self, mark: Mark, bottom: float) -> int:
        self.marks.append(replace(mark, panel=len(self.panels) - 1))
        self.panels[-1][1] = max(self.height, bottom)
        return len(self.marks) - 1

    def box(
        self, x: float, y: float, width: float, height: float, kind: str, title: str = "",
        frame: int | None = None, radius: float = 3,
    ) -> int:  # fmt: skip
        at = (x, y, width, height) if radius == 3 else (x, y, width, height, radius)
        return self._add(Mark("box", at, kind, title=title, frame=frame), y + height)

    def text(self, x: float, y: float, words: str, kind: str = "") -> int:
        return self._add(Mark("text", (x, y), kind, words), y + 4)

    def dot(self, x: float, y: float, radius: float, kind: str, title: str = "") -> int:
        return self._add(Mark("dot", (x, y, radius), kind, title=title), y + radius)

    def path(self, way: str, kind: str, bottom: float = 0) -> int:
        return self._add(Mark("path", (way,), kind), bottom)

    def arrow(self, x1: float, y1: float, x2: float, y2: float, kind: str = "arrow") -> tuple[int, int]:
        """A straight arrow: the numbers of its line and its head."""
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5 or 1
        dx, dy = (x2 - x1) / length, (y2 - y1) / length
        back, side = (x2 - 8 * dx, y2 - 8 * dy), (-4.5 * dy, 4.5 * dx)
        line = self.path(f"M{x1:.1f} {y1:.1f}L{back[0]:.1f} {back[1]:.1f}", kind, max(y1, y2))
        head = self.path(
            f"M{x2:.1f} {y2:.1f}L{back[0] + side[0]:.1f} {back[1] + side[1]:.1f}"
            f"L{back[0] - side[0]:.1f} {back[1] - side[1]:.1f}Z",
            "head" if kind == "arrow" else kind,
        )
        return line, head


@dataclass(frozen=True)
class Frames(Figured):
    """A drawing with its frames. `frame` is what a frame is called (“step”), `legend` are (shape and kind,
    words) of the samples below it, `name` says what it is, and `start` which frame is shown first."""

    drawing: Drawing
    frames: Sequence[Frame]
    name: str
    frame: str = "step"
    start: int = 0
    legend: Sequence[tuple[str, str]] = ()

    def record(self) -> dict[str, Any]:
        """JSON-able."""
        frames = []
        for frame in self.frames:
            changes = {"kinds": frame.kinds, "words": frame.words}
            frames.append(
                {"caption": frame.caption}
                | {k: {str(i): v for i, v in c.items()} for k, c in changes.items() if c}
            )
        return {
            "panels": [[width, round(height + 2, 1)] for width, height in self.drawing.panels],
            "marks": [mark.record() for mark in self.drawing.marks],
            "frames": frames,
            "frame": self.frame,
            "start": self.start,
            "legend": [list(entry) for entry in self.legend],
            "name": self.name,
        }

    def figure(self) -> Moving:
        """The figure, on the frame that it starts with."""
        caption = self.frames[self.start].caption
        return Moving("frames", self.record(), self._picture(), f"{self.name}. {caption}")

    def _picture(self) -> str:
        frame, margin, panels = self.frames[self.start], 16, self.drawing.panels
        room = max(WIDTH, *(width for width, _ in panels))
        lines = wrap(frame.caption, int(room / 7.4))
        parts = [svg.text(margin, 26 + 20 * i, line, "strong") for i, line in enumerate(lines)]
        left, top, bottom = 0.0, 20.0 * len(lines) + 18, 0.0
        for number, (width, height) in enumerate(panels):
            if left and left + width > room:
                left, top = 0.0, bottom + 12
            parts.append(f'<g transform="translate({margin + left:g} {top:g})">')
            for at, mark in enumerate(self.drawing.marks):
                if mark.panel == number:
                    parts.append(mark.svg(frame.kinds.get(at, mark.kind), frame.words.get(at, mark.words)))
            parts.append("</g>")
            left, bottom = left + width + 24, max(bottom, top + height)
        return svg.page(parts, bottom + 14, room + 2 * margin)
