"""A trace as a figure to step through: its steps, and the parts of arrays that they touch."""

from __future__ import annotations

import linecache
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gpulab.plot.moving import Array, KernelSteps, Moving, Touch, Warp, kernel_steps
from gpulab.plot.moving.figure import WEIGHT

from .arrays import Known, Touched
from .steps import WARP, Name, Step
from .threads import Chosen

WARPS = 2  # side by side
STEPS = 1500  # of a figure
CELLS = 60_000  # that the steps of a figure touch: what it weighs and how fast it is drawn depend on them
WATCHED = 4  # threads whose variables have columns
WINDOW = 128  # cells of a long array that are shown with their contents
_DECLARES = re.compile(r"^(@|def\b|extern\b|template\b|\{|.*__(global|device|shared)__|.*\bshared\.array\()")


def figure(
    kernel: str,
    threads: Sequence[Chosen],
    steps: Iterable[Step],
    order: Sequence[Name],
    block: tuple[int, int, int],
    at_end: bool = False,
) -> Moving:
    """The figure of a trace's steps: those of the warps of the first chosen threads, two at most.

    `order` names the variables. The figure opens on its first step, or `at_end`. Raises CannotDraw without a
    step.
    """
    size = math.prod(block)
    places = list(dict.fromkeys((t.block, t.warp) for t in threads))[:WARPS]
    watched = [t for t in threads if (t.block, t.warp) in places][:WATCHED]
    kept = _kept([step for step in steps if (step.block, step.warp) in places and _tells(step)])
    source, lines = _source(kept)
    kept = [step for step in kept if step.location.line in lines and step.location.file == source]
    windows = _windows(touched for step in kept for touched in step.touches)
    in_blocks = any("/" in thread.label for thread in watched)  # they were named as (block, thread)
    many = in_blocks or len({block for block, _ in places}) > 1
    warps = [
        Warp(
            f"block {b} · warp {w}" if many else f"warp {w}",
            w * WARP + (0 if in_blocks else b * size),
            f"{w}" if len({block for block, _ in places}) == 1 else f"{b}·{w}",
        )
        for b, w in places
    ]
    labels = {thread: _label(thread) for thread in watched}
    before: dict[str, dict[str, str]] = {}
    drawn = [_drawn(step, places, labels, windows, order, before) for step in kept]
    record = KernelSteps(
        kernel,
        [(number, linecache.getline(source, number).rstrip("\n")) for number in lines],
        warps,
        [windows[known] for known in windows],
        drawn,
        list(labels.values()),
        len(drawn) - 1 if at_end else 0,
    )
    made = record.figure()
    while made.weight > WEIGHT and len(record.steps) > 1:  # the beginning of a long run
        record = record.first(max(len(record.steps) * WEIGHT // made.weight * 9 // 10, 1))
        made = record.figure()
    return made


def _label(thread: Chosen) -> str:
    """``thread 33``, ``thread 5 of block 2``."""
    block, _, number = thread.label.rpartition("/")
    return f"thread {number} of block {block}" if block else f"thread {number}"


def _tells(step: Step) -> bool:
    """Whether it is more than a line that declares something."""
    return bool(step.touches or step.waits) or not _DECLARES.match(step.text)


def _kept(steps: Sequence[Step]) -> list[Step]:
    """As many steps as a figure can hold."""
    found: list[Step] = []
    cells = 0
    for step in steps[:STEPS]:
        cells += sum(len(touched.cells) for touched in step.touches)
        if cells > CELLS and found:
            break
        found.append(step)
    return found


# ---- the source ------------------------------------------------------------------------------------


def _source(steps: Sequence[Step]) -> tuple[str, list[int]]:
    """The file in which most steps are, and the lines of it that are shown: the functions that ran."""
    files = [step.location.file for step in steps]
    if not files:
        return "", []
    file = max(dict.fromkeys(files), key=files.count)
    text = linecache.getlines(file)
    shown: set[int] = set()
    for line in {step.location.line for step in steps if step.location.file == file}:
        shown |= set(_function(text, line))
    return file, sorted(shown)


def _function(text: Sequence[str], line: int) -> range:
    """The lines of the function around a line: from its first line, or decorator, to where it ends."""
    if not 0 < line <= len(text):
        return range(line, line + 1)
    first = line
    while first > 1 and not re.match(r"\s*(def\b|.*\b(__global__|__device__)\b)", text[first - 1]):
        first -= 1
    python = re.match(r"(\s*)def\b", text[first - 1])
    if python:
        indent = len(python[1])
        while first > 1 and re.match(rf"\s{{{indent}}}@", text[first - 2]):
            first -= 1
        last = line
        for number in range(line, len(text)):
            words = text[number]
            if words.strip() and len(words) - len(words.lstrip()) <= indent:
                break
            last = number + 1 if words.strip() else last
    else:
        last = next((n for n in range(line, len(text) + 1) if text[n - 1].startswith("}")), line)
    return range(first, last + 1)


# ---- arrays ----------------------------------------------------------------------------------------


def _windows(touches: Iterable[Touched]) -> dict[Known, Array]:
    """Of each array that is touched, in the order in which they are, the part that is drawn."""
    cells: dict[Known, set[int]] = {}
    for touched in touches:
        cells.setdefault(touched.array, set()).update(touched.cells)
    names: dict[str, int] = {}
    found = {}
    for known, its in cells.items():
        names[known.name] = names.get(known.name, 0) + 1
        name = known.name if names[known.name] == 1 else f"{known.name} ({names[known.name]})"
        found[known] = _window(known, name, its)
    return found


def _window(known: Known, name: str, cells: set[int]) -> Array:
    note = " · ".join(filter(None, [known.dtype, known.space]))
    columns = known.shape[-1] if len(known.shape) > 1 else 0
    if not columns:
        first, stop = _span(min(cells), max(cells) + 1, known.size, WINDOW)
        if stop - first > kernel_steps.MOST_CELLS:
            stop = first + kernel_steps.MOST_CELLS
        values = _texts(known.before, np.arange(first, stop))
        return Array(name, (stop - first,), values, _of(note, known, stop - first), first)
    rows = known.size // columns
    its = np.array(sorted(cells))
    top, bottom = _span(int(its.min() // columns), int(its.max() // columns) + 1, rows, 16)
    left, right = _span(int((its % columns).min()), int((its % columns).max()) + 1, columns, 33)
    right = min(right, left + 64)
    bottom = min(bottom, top + kernel_steps.MOST_CELLS // (right - left))
    index = (np.arange(top, bottom)[:, None] * columns + np.arange(left, right)).ravel()
    shape = (bottom - top, right - left)
    values = _texts(known.before, index)
    note = _of(note, known, len(index))
    return Array(name, shape, values, note, top * columns + left, columns)


def _span(first: int, stop: int, size: int, room: int) -> tuple[int, int]:
    """From where to where an axis is shown: whole if there is room, else what is touched, in steps of 32."""
    if size <= room:
        return 0, size
    return first // 32 * 32, min(-(-stop // 32) * 32, size)


def _of(note: str, known: Known, shown: int) -> str:
    size = " × ".join(f"{n:,}" for n in known.shape)
    return note if shown == known.size else f"{note} · a part of {size}"


def _texts(values: np.ndarray | None, index: np.ndarray) -> list[str]:
    return [] if values is None else [word(values[i]) for i in index]


def word(value: Any) -> str:
    """A number as a cell has room for it: three digits, or all of a whole number that is not too long."""
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, float):
        return str(value)
    if value.is_integer() and abs(value) < 1e5:
        return f"{value:.1f}" if abs(value) < 1000 else f"{value:.0f}"
    text = f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return text if len(text) < 7 else f"{value:.0e}"


# ---- steps -----------------------------------------------------------------------------------------


def _drawn(
    step: Step,
    places: Sequence[tuple[int, int]],
    labels: Mapping[Chosen, str],
    windows: Mapping[Known, Array],
    order: Sequence[Name],
    before: dict[str, dict[str, str]],
) -> kernel_steps.Step:
    """A step as figures take it; `before` holds the variables that were shown last."""
    values: dict[str, dict[str, str]] = {}
    for thread, label in labels.items():
        held = before.setdefault(label, {})
        now = step.values.get(thread, {})
        for name in order:
            if name in now:
                written, text = ".".join(filter(None, name)), word_of(now[name])
                if held.get(written) != text:
                    held[written] = text
                    values.setdefault(label, {})[written] = text
    touches = [
        Touch(
            windows[touched.array].name,
            touched.kind,
            touched.cells,
            [word(v) for v in touched.values] if touched.values and touched.kind == "write" else (),
        )
        for touched in step.touches
    ]
    return kernel_steps.Step(
        step.location.line,
        (*step.lanes, *[False] * (WARP - len(step.lanes))),
        places.index((step.block, step.warp)),
        touches,
        values,
        "barrier" if step.waits else "",
    )


def word_of(value: Any) -> str:
    """A variable: a number, or a tuple of them."""
    return f"({', '.join(map(word_of, value))})" if isinstance(value, tuple) else word(value)
