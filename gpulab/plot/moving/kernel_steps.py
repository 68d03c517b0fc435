"""Steps of a kernel: the source, the lanes of one or two warps, variables of watched threads, and arrays."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import wrap
from typing import Any

from gpulab.foundation.errors import Message

from . import svg
from .figure import Figured, Moving

LANES = 32
MOST_CELLS = 4096  # of an array: a page that draws more does not step smoothly
NAMED_CELLS = 256  # more are drawn small, without values
PICTURED = 16  # lines of the source in the first frame
MARKS = ("", "barrier", "finished")


class CannotDraw(Message, ValueError):
    """The steps do not fit together; the message says which."""


@dataclass(frozen=True)
class Warp:
    """A warp that is shown: its name, the number that its lane 0 goes by, and what stands for it beside the
    source (the digits of the label, if nothing)."""

    label: str
    first: int = 0
    short: str = ""


@dataclass(frozen=True)
class Array:
    """An array whose cells are painted.

    `shape` has one or two axes. `values` are the texts in the cells before the first step, in row order, or
    none. `note` says dtype and memory space. Of an array that is too large to be shown whole, `shape` is that
    of the part, `first` the linear index of the first cell shown and `pitch` the columns of the whole (0: as
    many as are shown).
    """

    name: str
    shape: tuple[int, ...]
    values: Sequence[str] = ()
    note: str = ""
    first: int = 0
    pitch: int = 0

    @property
    def size(self) -> int:
        return self.shape[0] * (self.shape[1] if len(self.shape) == 2 else 1)

    @property
    def columns(self) -> int:
        """Of the whole array; 0 in one dimension."""
        return 0 if len(self.shape) == 1 else self.pitch or self.shape[1]

    def index(self, cell: int) -> str:
        """The text in the brackets for a cell, a linear index: ``5``, ``1, 4``."""
        return f"{cell // self.columns}, {cell % self.columns}" if self.columns else str(cell)

    def place(self, cell: int) -> int:
        """Where a cell stands among those that are shown, -1 if it is not among them."""
        if not self.columns:
            return cell - self.first if self.first <= cell < self.first + self.size else -1
        row = cell // self.columns - self.first // self.columns
        column = cell % self.columns - self.first % self.columns
        inside = 0 <= row < self.shape[0] and 0 <= column < self.shape[1]
        return row * self.shape[1] + column if inside else -1


@dataclass(frozen=True)
class Touch:
    """What the active lanes of a step read or wrote: `cells` has the linear index of each active lane's
    element, in the order of the lanes, and `values` the texts that are in those cells afterwards (of a write;
    one for all lanes, or one for each)."""

    array: str
    kind: str
    cells: Sequence[int]
    values: Sequence[str] = ()


@dataclass(frozen=True)
class Step:
    """One source line, executed once by one warp.

    `line` is its number, `warp` the position in the record's warps, `lanes` (32,) which of them took part.
    `values` are the variables of watched threads that the step set, by the thread's label. `mark` is
    ``barrier`` where the lanes now wait and ``finished`` where they have left the kernel. Without a
    `caption` one is made of the rest.
    """

    line: int
    lanes: Sequence[bool]
    warp: int = 0
    touches: Sequence[Touch] = ()
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    mark: str = ""
    caption: str = ""


@dataclass(frozen=True)
class KernelSteps(Figured):
    """A record of steps. `source` are (number, text) of the kernel's lines, `watched` the labels of threads
    whose variables are shown. The figure opens on step `start`.

    Raises CannotDraw where a step names what is not there.

    >>> steps = KernelSteps("copy", [(2, "out[i] = a[i]")], [Warp("warp 0")], [Array("a", (32,))],
    ...     [Step(2, [True] * 32, touches=[Touch("a", "read", range(32))])])
    >>> steps.told(0)
    'Line 2: threads 0–31 read a[0…31].'
    """

    kernel: str
    source: Sequence[tuple[int, str]]
    warps: Sequence[Warp]
    arrays: Sequence[Array]
    steps: Sequence[Step]
    watched: Sequence[str] = ()
    start: int = 0

    def __post_init__(self) -> None:
        if not self.steps:
            raise CannotDraw("there is nothing to step through: the record has no step")
        if not 0 <= self.start < len(self.steps):
            raise CannotDraw(f"the figure cannot open on step {self.start}: there are {len(self.steps)}")
        if not 1 <= len(self.warps) <= 2:
            raise CannotDraw(f"one or two warps can be stood side by side; the record has {len(self.warps)}")
        for array in self.arrays:
            if len(array.shape) not in (1, 2) or not 0 < array.size <= MOST_CELLS:
                raise CannotDraw(
                    f"array {array.name!r} has the shape {array.shape}; up to {MOST_CELLS:,} cells in one or"
                    " two dimensions can be drawn. Choose a part of it (`first` says where it begins)"
                )
            if array.values and len(array.values) != array.size:
                raise CannotDraw(
                    f"array {array.name!r} has {array.size} cells and {len(array.values)} values"
                )
        names, lines = {a.name for a in self.arrays}, {number for number, _ in self.source}
        for number, step in enumerate(self.steps):
            where = f"step {number} (line {step.line})"
            if step.line not in lines:
                raise CannotDraw(f"{where} is on a line that the source does not have")
            if not 0 <= step.warp < len(self.warps):
                raise CannotDraw(f"{where} is of warp {step.warp}; the record has {len(self.warps)}")
            if len(step.lanes) != LANES:
                raise CannotDraw(f"{where} has {len(step.lanes)} lanes; a warp has {LANES}")
            if step.mark not in MARKS:
                raise CannotDraw(f"{where} has the mark {step.mark!r}; there are {', '.join(MARKS[1:])}")
            for touch in step.touches:
                if touch.array not in names or touch.kind not in ("read", "write"):
                    raise CannotDraw(f"{where} has a {touch.kind!r} of array {touch.array!r}")
                if len(touch.values) not in (0, 1, len(touch.cells)):
                    raise CannotDraw(
                        f"{where} touches {len(touch.cells)} cells and has {len(touch.values)} values"
                    )
            if unknown := set(step.values) - set(self.watched):
                raise CannotDraw(f"{where} has values of {', '.join(sorted(unknown))}, which nobody watches")

    def first(self, count: int) -> KernelSteps:
        """With the first `count` steps alone."""
        return replace(self, steps=self.steps[:count], start=min(self.start, count - 1))

    # ---- words -----------------------------------------------------------------------------------

    def told(self, index: int) -> str:
        """The caption of a step: ``Line 6: threads 0–31 read a[0…31].``"""
        step = self.steps[index]
        if step.caption:
            return step.caption
        first = self.warps[step.warp].first
        threads = [first + lane for lane, on in enumerate(step.lanes) if on]
        who = f"{'thread' if len(threads) == 1 else 'threads'} {_list(threads)}"
        one = len(threads) == 1
        doing = []
        touched: dict[tuple[str, str], set[int]] = {}  # of one array by one kind: told together
        for touch in step.touches:
            touched.setdefault((touch.kind, touch.array), set()).update(touch.cells)
        for (kind, name), cells in touched.items():
            doing.append(f"{kind}{'s' if one else ''} {self._cells(name, sorted(cells))}")
        if step.mark == "barrier":
            doing.append("waits at the barrier" if one else "wait at the barrier")
        if step.mark == "finished":
            doing.append("has finished" if one else "have finished")
        if not doing:
            set_here = dict.fromkeys(name for named in step.values.values() for name in named)
            verb = "sets" if one else "set"
            decides = re.match(r"\s*(if|elif|while|for|else|\}\s*else)\b", dict(self.source)[step.line])
            plainly = ("checks the condition", "check the condition") if decides else ("goes on", "go on")
            doing.append(f"{verb} {_and(list(set_here))}" if set_here else plainly[0 if one else 1])
        return f"Line {step.line}: {who} {_and(doing)}."

    def _cells(self, name: str, cells: Sequence[int]) -> str:
        array = next(a for a in self.arrays if a.name == name)
        if len(cells) > 2 and len(array.shape) == 1 and cells[-1] - cells[0] == len(cells) - 1:
            return f"{array.name}[{cells[0]}…{cells[-1]}]"
        named = [f"{array.name}[{array.index(cell)}]" for cell in cells]
        return _and(named) if len(named) <= 3 else f"{named[0]}, {named[1]} … {named[-1]}"

    # ---- record ----------------------------------------------------------------------------------

    def record(self) -> dict[str, Any]:
        """JSON-able; the cells of a touch are runs [first, step, count]."""
        position = {array.name: i for i, array in enumerate(self.arrays)}
        steps = []
        for i, step in enumerate(self.steps):
            one: dict[str, Any] = {
                "line": step.line,
                "warp": step.warp,
                "lanes": "".join("1" if on else "0" for on in step.lanes),
                "caption": self.told(i),
            }
            if step.touches:
                one["touches"] = [
                    {"array": position[t.array], "kind": t.kind, "cells": runs(t.cells)}
                    | ({"values": list(t.values)} if t.values else {})
                    for t in step.touches
                ]
            if step.values:
                one["values"] = {who: dict(named) for who, named in step.values.items()}
            if step.mark:
                one["mark"] = step.mark
            steps.append(one)
        return {
            "kernel": self.kernel,
            "source": [list(line) for line in self.source],
            "warps": [
                {"label": w.label, "first": w.first, "short": w.short or re.sub(r"\D+", "", w.label)}
                for w in self.warps
            ],
            "watched": list(self.watched),
            "arrays": [
                {"name": a.name, "shape": list(a.shape), "values": list(a.values)}
                | {"note": a.note, "first": a.first, "pitch": a.columns}
                for a in self.arrays
            ],
            "steps": steps,
            "start": self.start,
        }  # fmt: skip

    def figure(self) -> Moving:
        """The figure, on the step that it opens with."""
        caption = f"Stepping through {self.kernel}, {len(self.steps)} steps. "
        caption += f"Step {self.start + 1}: {self.told(self.start)}"
        return Moving("kernel steps", self.record(), self._picture(), caption)

    # ---- the first frame --------------------------------------------------------------------------

    def _picture(self) -> str:
        step, parts, y = self.steps[self.start], [], 28.0
        parts.append(svg.text(16, y, self.kernel, "mono strong"))
        parts.append(svg.text(svg.WIDTH - 16, y, f"step {self.start + 1} of {len(self.steps)}", "soft end"))
        for line in wrap(self.told(self.start), 74):
            y += 20
            parts.append(svg.text(16, y, line, "strong"))
        y += 14
        for number, words in self._lines_around(step.line):
            if number == step.line:
                parts.append(svg.box(10, y, svg.WIDTH - 20, 19, "line"))
                parts.append(svg.text(16, y + 14, "▸", "strong"))
            parts.append(svg.text(28, y + 14, f"{number:>3}", "mono soft"))
            parts.append(svg.text(62, y + 14, words if len(words) <= 58 else f"{words[:57]}…", "mono"))
            y += 19
        for position, warp in enumerate(self.warps):
            y += 26
            last = next((s for s in self.steps[self.start :: -1] if s.warp == position), None)
            parts.append(svg.text(16, y, warp.label))
            left = 38.0 + 7 * max(len(w.label) for w in self.warps)
            for lane in range(LANES):
                on = last is not None and last.lanes[lane]
                kind = (last.mark or "active") if on and last else "inactive"
                parts.append(svg.lane(left + 13 * lane + 4 * (lane // 8), y - 4, kind))
        for who, named in self._held().items():
            y += 24
            values = " · ".join(f"{name} = {value}" for name, value in named.items())
            parts.append(svg.text(16, y, f"{who}: {values}"[:70], "mono"))
        y += 10
        for array in self.arrays:
            y = self._array(parts, array, y)
        return svg.page(parts, y + 16)

    def _lines_around(self, line: int) -> Sequence[tuple[int, str]]:
        """As many lines of the source as a picture has room for, with `line` among them."""
        at = next(i for i, (number, _) in enumerate(self.source) if number == line)
        first = max(0, min(at - PICTURED // 2, len(self.source) - PICTURED))
        return self.source[first : first + PICTURED]

    def _held(self) -> dict[str, dict[str, str]]:
        """What the watched threads' variables hold on the step that the figure opens with."""
        held: dict[str, dict[str, str]] = {}
        for step in self.steps[: self.start + 1]:
            for who, named in step.values.items():
                held.setdefault(who, {}).update(named)
        return held

    def _array(self, parts: list[str], array: Array, y: float) -> float:
        kinds: dict[int, str] = {}
        values = dict(enumerate(array.values))
        for number, step in enumerate(self.steps[: self.start + 1]):
            for touch in step.touches:
                if touch.array == array.name:
                    for i, cell in enumerate(touch.cells):
                        kinds[array.place(cell)] = touch.kind if number == self.start else "earlier"
                        if touch.values:
                            values[array.place(cell)] = touch.values[i % len(touch.values)]
        named = array.size <= NAMED_CELLS
        columns = array.shape[1] if len(array.shape) == 2 else min(array.shape[0], 16 if named else 64)
        named = named and columns <= 16
        width = min((svg.WIDTH - 32) / columns, 36.0 if named else 14.0)
        height = min(width, 20.0)
        y += 24
        parts.append(svg.text(16, y, array.name, "mono strong"))
        parts.append(svg.text(28 + 8 * len(array.name), y, array.note, "soft"))
        y += 8
        rows = -(-array.size // columns)
        if not named:  # thousands of frames would be the weight of the whole figure
            parts.append(svg.box(16, y, columns * width, rows * height, "cell"))
        for cell in range(array.size):
            kind = kinds.get(cell, "cell")
            left, top = 16 + cell % columns * width, y + cell // columns * height
            if named or cell in kinds:
                parts.append(svg.box(left + 1, top + 1, width - 2, height - 2, kind))
                if kind == "read" and named:
                    parts.append(svg.box(left + 1, top + height - 4, width - 2, 3, "under"))
            if named and width >= 20 and cell in values:
                parts.append(svg.text(left + width / 2, top + 14, values[cell][:5], "mono small middle"))
        return y + rows * height


def runs(cells: Sequence[int]) -> list[list[int]]:
    """Cells as [first, step, count], in order: 0, 1, 2, 3, 8 is [[0, 1, 4], [8, 0, 1]]."""
    found: list[list[int]] = []
    for cell in cells:
        last = found[-1] if found else None
        if last and last[2] == 1:
            last[1:] = [cell - last[0], 2]
        elif last and cell == last[0] + last[1] * last[2]:
            last[2] += 1
        else:
            found.append([int(cell), 0, 1])
    return found


def _list(numbers: Sequence[int]) -> str:
    """``0–31``, ``0, 2, 4 … 30``, ``1, 5 and 6``."""
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]}–{numbers[-1]}"
    if len(numbers) > 5:
        return f"{numbers[0]}, {numbers[1]}, {numbers[2]} … {numbers[-1]}"
    return _and([str(number) for number in numbers])


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1] if words else ""]))
