"""When the warps of a block work and wait, to scrub through: warps, copies on their way, tensor cores."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from .figure import Figured, Moving
from .frames import Drawing, Frame, Frames
from .kernel_steps import CannotDraw

KINDS = {"works": "full", "loads": "ahead", "waits": "idle", "on its way": "ahead", "made": "weights"}
LEGEND = {
    "works": "works",
    "loads": "waits for its own load, on its way",
    "waits": "waits for others",
    "on its way": "copy on its way",
    "made": "product being made",
}
DOES = {"works": "works", "loads": "waits for its load", "waits": "waits"}  # what warps do, in a sentence
LEFT, WIDE, ROW = 118.0, 560.0, 30.0
MOST = 300  # intervals that are drawn, and moments
LANES = 6  # of copies that are on their way at the same time


@dataclass(frozen=True)
class WarpTimeline(Figured):
    """`rows` has intervals with ``kind``, ``start``, ``stop`` (cycles) and ``line`` by the row's name, as
    `gpulab.timeline` gives them; `how` says what the cycles are. A frame is a moment at which something
    begins. Longer runs are drawn as far as `MOST` intervals reach. Raises CannotDraw without an interval."""

    kernel: str
    rows: Mapping[str, Sequence[Any]]
    how: str = ""

    def __post_init__(self) -> None:
        if not any(self.rows.values()):
            raise CannotDraw(f"timeline: {self.kernel} does nothing that takes time.")

    def figure(self) -> Moving:
        end, cut = self._end()
        scale = WIDE / end
        drawing = Drawing(LEFT + WIDE + 8)
        marks: list[tuple[str, Any, int]] = []
        y = 4.0
        for name, intervals in self.rows.items():
            shown = [each for each in intervals if each.start < end]
            lanes = _lanes(shown)
            height = ROW - 8 if len(set(lanes)) < 2 else max(ROW - 8, 7.0 * (1 + max(lanes)))
            drawing.text(LEFT - 10, y + height / 2 + 4, name, "small end")
            drawing.box(LEFT, y, WIDE, height, "plain", radius=2)
            each_high = height / (1 + max(lanes, default=0))
            for each, lane in zip(shown, lanes, strict=True):
                wide = max((min(each.stop, end) - each.start) * scale - 0.6, 0.6)
                at = f", line {each.line}" if each.line else ""
                title = f"{name}: {LEGEND[each.kind]}{at}, cycle {each.start:,.0f} to {each.stop:,.0f}"
                x = LEFT + each.start * scale
                box = drawing.box(
                    x,
                    y + lane * each_high,
                    wide,
                    each_high - (each_high < 20),
                    KINDS[each.kind],
                    title,
                    radius=1,
                )
                marks.append((name, each, box))
            y += height + 8
        step = _round(end / 6)
        for tick in range(int(end / step) + 1):
            drawing.text(LEFT + tick * step * scale, y + 8, f"{tick * step:,}", "tiny soft middle")
        drawing.text(LEFT + WIDE / 2, y + 24, "cycles, modelled", "small soft middle")
        for number, line in enumerate(wrap(self.how, 104)):
            drawing.text(LEFT, y + 44 + 14 * number, line, "small soft")
        moments = sorted({each.start for _, each, _ in marks})[:MOST]
        now = [drawing.path(f"M{LEFT + m * scale:.1f} 0V{y - 4:.1f}", "hidden", 0) for m in moments]
        frames = [self._frame(moment, marks, line) for moment, line in zip(moments, now, strict=True)]
        there = {each.kind for _, each, _ in marks}
        legend = [(f"box {KINDS[kind]}", LEGEND[kind]) for kind in LEGEND if kind in there]
        said = f"{self.kernel}, {self._said()}" + (f"; the first {end:,.0f} are drawn" if cut else "")
        start = min(len(frames) - 1, len(frames) // 3)
        return Frames(drawing, frames, said, "moment", start, legend).figure()

    def _end(self) -> tuple[float, bool]:
        """The last cycle that is drawn, and whether there is more."""
        starts = sorted(each.start for row in self.rows.values() for each in row)
        end = max(each.stop for row in self.rows.values() for each in row)
        return (starts[MOST], True) if len(starts) > MOST else (end, False)

    def _said(self) -> str:
        whole = max(each.stop for row in self.rows.values() for each in row)
        shares = []
        for name, row in self.rows.items():
            if any(each.kind in DOES for each in row):
                idle = sum(each.stop - each.start for each in row if each.kind in ("waits", "loads"))
                shares.append(f"{_agrees(name, 'waits')} {100 * idle / whole:.0f} % of the time")
        return f"{whole:,.0f} cycles, modelled: {', '.join(shares)}"

    def _frame(self, moment: float, marks: Sequence[tuple[str, Any, int]], line: int) -> Frame:
        kinds = {line: "rule now"}
        doing: dict[tuple[str, int], list[str]] = {}
        copies = 0
        made = False
        for name, each, box in marks:
            if not each.start <= moment < each.stop:
                continue
            kinds[box] = f"{KINDS[each.kind]} current"
            copies += each.kind == "on its way"
            made |= each.kind == "made"
            if each.kind in DOES:
                doing.setdefault((each.kind, each.line if each.kind != "works" else 0), []).append(name)
        parts = []
        for (kind, where), names in doing.items():
            at = f" at line {where}" if where else ""
            parts.append(f"{_agrees(' and '.join(names), DOES[kind])}{at}")
        if copies:
            parts.append("a copy is on its way" if copies == 1 else f"{copies} copies are on their way")
        if made:
            parts.append("the tensor cores multiply")
        return Frame(f"Cycle {moment:,.0f}: {', '.join(parts)}.", kinds)


def _agrees(who: str, verb: str) -> str:
    """``warp 4 waits``, ``warps 0 to 3 wait``."""
    several = "warps" in who or " and " in who
    first, space, rest = verb.partition(" ")
    return f"{who} {first[:-1] if several else first}{space}{rest}"


def _lanes(intervals: Sequence[Any]) -> list[int]:
    """A lane for each interval, so that those which overlap do not lie on each other; at most LANES."""
    free: list[float] = []
    found = []
    for each in intervals:
        lane = next((i for i, until in enumerate(free) if until <= each.start + 1e-9), len(free))
        if lane == len(free):
            free.append(0.0)
        free[lane] = each.stop
        found.append(lane % LANES)
    return found


def _round(x: float) -> int:
    """A round number of about this size: 1, 2 or 5 times a power of ten."""
    steps = [d * 10**e for e in range(9) for d in (1, 2, 5)]
    return steps[min(bisect_right(steps, x), len(steps) - 1)]
