"""The picture of a failed check: expected and got with the wrong cells marked, an index beyond the edge of an
array, two threads that race for one cell.

Nothing is run or compared here: what is drawn was found by the check.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gpulab.simulator.observe.race import VERBS, Race
from gpulab.simulator.observe.writers import Writers
from gpulab.simulator.simt.errors import Endless, KernelFault, Outside, source_text, thread_words

from . import messages
from .compare import Mismatch, index_words, pair_words, value_words
from .parts import Detail, Watched
from .spec import Case

if TYPE_CHECKING:
    from gpulab.plot.moving import Drawing, Moving

SIDE = 8  # rows and columns of the part of a matrix that is shown
LONG = 32  # elements of an array in one dimension
COLUMNS = 8  # in a row of those
CELL, TALL = 40.0, 26.0  # pixels
MAP = 44  # boxes along a side of the map of the whole array
MARGIN = 34.0  # for numbers of rows
STEPS = 24  # wrong elements that can be stepped through


def detail(mismatch: Mismatch, writers: Writers | None = None) -> Detail:
    """The picture of wrong elements as part of a verdict; `writers` watched the run, if somebody did."""
    return Detail("", picture=lambda: wrong(mismatch, writers))


def of_fault(fault: KernelFault | None, case: Case) -> tuple[Detail, ...]:
    """The picture of an access beyond an array, if that stopped the kernel, and the threads that can be
    watched."""
    if fault is None or fault.thread is None or fault.block is None or fault.linear is None:
        return ()
    if isinstance(fault, Endless):  # nobody steps through a loop without an end
        return ()
    who = who_words(fault.thread, fault.block)
    watch = _watch([who], case, [fault.linear])
    if fault.outside is None:
        return (watch,)
    found, line = fault.outside, fault.location.line if fault.location else 0
    return (Detail("", picture=lambda: outside(found, who, line, source_text(fault.location))), watch)


def watch_writer(mismatch: Mismatch, writers: Writers | None, case: Case) -> tuple[Detail, ...]:
    """Offers to step through the thread that wrote the first wrong element, if one did."""
    if writers is None or mismatch.array not in writers.ranges:
        return ()
    element = int(np.ravel_multi_index(mismatch.first, mismatch.wrong.shape)) if mismatch.first else 0
    writer = writers.of(mismatch.array, element)
    if writer is None:
        return ()
    block, thread = (int(n[element]) for n in writers.threads(mismatch.array))
    return (_watch([who_words(writer.thread, writer.block)], case, [(block, thread)], writer.launch),)


def watch_race(race: Race, case: Case) -> tuple[Detail, ...]:
    """Offers to step through the two threads of a race."""
    both = [race.first, race.second]
    who = [who_words(touch.thread, touch.block) for touch in both]
    return (_watch(who, case, [(touch.linear_block, touch.linear_thread) for touch in both]),)


def _watch(who: list[str], case: Case, threads: list[tuple[int, int]], launch: int = 0) -> Detail:
    return Detail(messages.watch(who), watched=Watched(case.name, tuple(threads), launch))


def wrong(mismatch: Mismatch, writers: Writers | None) -> Moving | None:
    """Expected and got around the first wrong element; None for an array without axes.

    A step is a wrong element: its caption says what it is, what it should be, and who wrote it.
    """
    if not mismatch.wrong.shape:
        return None
    from gpulab.plot.moving import Drawing, Frame, Frames

    columns = mismatch.wrong.shape[-1] if mismatch.wrong.ndim > 1 else 0
    shape = (mismatch.wrong.size // columns, columns) if columns else mismatch.wrong.shape
    bad, got = mismatch.wrong.reshape(shape), mismatch.got.reshape(shape)
    expected = np.broadcast_to(mismatch.expected, mismatch.wrong.shape).reshape(shape)
    part = _around(tuple(int(i) for i in np.argwhere(bad)[0]), shape)
    steps: dict[tuple[int, ...], int] = {}
    for place in np.argwhere(bad[part])[:STEPS]:
        steps[tuple(int(i) + s.start for i, s in zip(place, part, strict=True))] = len(steps)

    def said(index: tuple[int, ...]) -> str:
        whole = np.unravel_index(int(np.ravel_multi_index(index, shape)), mismatch.wrong.shape)
        return _said(mismatch, tuple(int(i) for i in whole), writers)

    across = part[1].stop - part[1].start if len(part) == 2 else min(part[0].stop - part[0].start, COLUMNS)
    drawing = Drawing(across * CELL + MARGIN + 4)
    grids: list[dict[tuple[int, ...], int]] = []
    for title, values in (("expected", expected), ("got", got)):
        if grids:
            drawing.panel(across * CELL + MARGIN + 4)
        drawing.text(MARGIN, 14, title, "strong small")
        drawing.text(MARGIN + 7 * len(title) + 6, 14, mismatch.array, "mono small soft")
        grids.append(_grid(drawing, part, shape, values, bad, steps, said if title == "got" else None))
    if bad.size > math.prod(s.stop - s.start for s in part):
        _map(drawing, bad, part)
    frames = []
    for index in steps:
        frames.append(Frame(said(index), {grid[index]: "frame" for grid in grids}))
    name = f"{mismatch.count:,} of {mismatch.wrong.size:,} elements of {mismatch.array} are wrong"
    legend = [
        ("box wrong", "wrong"),
        ("box cell", "right"),
        ("box frame", "the element that the caption is about"),
    ]
    return Frames(drawing, frames, name, "marked cell", 0, legend).figure()


def _around(first: tuple[int, ...], shape: tuple[int, ...]) -> tuple[slice, ...]:
    """The part of an array around an index that is shown."""
    room = (SIDE,) * 2 if len(shape) == 2 else (LONG,)
    if len(shape) == 2:  # a flat matrix is shown flat
        rows = min(shape[0], SIDE)
        room = (rows, SIDE if rows > 2 else COLUMNS)
        room = (SIDE if min(shape[1], SIDE) == SIDE else LONG // 2, room[1])
    part = []
    for at, size, some in zip(first, shape, room, strict=True):
        start = max(0, min(at - some // 4, size - some))
        part.append(slice(start, min(start + some, size)))
    return tuple(part)


def _grid(
    drawing: Drawing,
    part: tuple[slice, ...],
    shape: tuple[int, ...],
    values: np.ndarray,
    bad: np.ndarray,
    steps: dict[tuple[int, ...], int],
    said: Callable[[tuple[int, ...]], str] | None,
) -> dict[tuple[int, ...], int]:
    """Draw a part of an array. With `said`, which tells what there is to say of an element, wrong ones are
    marked. Returns, of each cell that is a step, the number of the box around it."""
    outlines = []
    matrix = len(shape) == 2
    for position, place in enumerate(np.ndindex(*(s.stop - s.start for s in part))):
        index = tuple(i + s.start for i, s in zip(place, part, strict=True))
        row, column = place if matrix else divmod(position, COLUMNS)
        x, y = MARGIN + column * CELL, (38 if matrix else 24) + row * TALL
        if column == 0:
            drawing.text(x - 6, y + 16, f"{index[0]:,}", "soft tiny end")
        if row == 0 and matrix:
            drawing.text(x + CELL / 2 - 1, 32, f"{index[1]:,}", "soft tiny middle")
        wrong_here = bool(bad[index])
        kind = "wrong" if wrong_here and said else "cell"
        title = said(index) if said else ""
        drawing.box(x, y, CELL - 2, TALL - 2, kind, title, frame=steps.get(index))
        if wrong_here and said:
            drawing.path(f"M{x + CELL - 11:.1f} {y:.1f}h9v9z", "corner")
        text = _short(values[index])
        drawing.text(
            x + CELL / 2 - 1,
            y + 16,
            text,
            f"mono {'tiny' if len(text) > 5 else 'small'} middle{' strong' if wrong_here else ''}",
        )
        if index in steps:
            outlines.append((index, x, y))
    return {index: drawing.box(x - 1.5, y - 1.5, CELL + 1, TALL + 1, "hidden") for index, x, y in outlines}


def _map(drawing: Drawing, bad: np.ndarray, part: tuple[slice, ...]) -> None:
    """Where in the whole array wrong elements are, and which part of it is shown."""
    grid, seen = (bad, part) if bad.ndim == 2 else (bad[None], (slice(0, 1), part[0]))
    height, width = grid.shape
    rows, columns = min(height, MAP), min(width, MAP if height > 1 else 2 * MAP)
    box = min(200 / max(rows, 1), (200 if height > 1 else 600) / columns, 10)
    tall = box if height > 1 else 12.0
    drawing.panel(max(columns * box + 4, 130))
    drawing.text(0, 14, f"all {' × '.join(f'{n:,}' for n in bad.shape)}", "soft small")
    edges, sides = (np.linspace(0, n, k + 1).astype(int) for n, k in ((height, rows), (width, columns)))
    top = 24.0
    drawing.box(0, top, columns * box, rows * tall, "plain", radius=1)
    for r in range(rows):
        for c in range(columns):
            if grid[edges[r] : edges[r + 1], sides[c] : sides[c + 1]].any():
                drawing.box(c * box, top + r * tall, box - 0.6, tall - 0.6, "corner", radius=0.5)
    left, right = (edge / width * columns * box for edge in (seen[1].start, seen[1].stop))
    upper, lower = (edge / height * rows * tall for edge in (seen[0].start, seen[0].stop))
    drawing.box(left - 1, top + upper - 1, max(right - left, 3) + 2, max(lower - upper, 3) + 2, "frame")


def _said(mismatch: Mismatch, index: tuple[int, ...], writers: Writers | None) -> str:
    """``out[3] is 2.0, should be 3.0. Thread (3, 0, 0) of block (0, 0, 0) wrote it, line 5.``"""
    got, expected = pair_words(mismatch.got[index], _typed(mismatch, index))
    place = index_words(mismatch.array, index)
    said = (
        f"{place} is {got} and should be {expected}."
        if mismatch.wrong[index]
        else f"{place} is {got}, as it should."
    )
    if writers is None or mismatch.array not in writers.ranges:
        return said
    writer = writers.of(mismatch.array, int(np.ravel_multi_index(index, mismatch.wrong.shape)))
    if writer is None:
        return f"{said} No thread wrote it."
    who = who_words(writer.thread, writer.block)
    where = f" in line {writer.location.line}" if writer.location else ""
    return f"{said} {who[:1].upper()}{who[1:]} wrote it{where}."


def _typed(mismatch: Mismatch, index: tuple[int, ...]) -> Any:
    expected = mismatch.expected[index]
    if mismatch.got.dtype.kind in "iub" and float(np.real(expected)).is_integer():
        return int(np.real(expected))
    return expected.astype(mismatch.got.dtype) if mismatch.got.dtype.kind == "f" else expected


def _short(value: Any) -> str:
    """An element as a cell has room for it."""
    text = value_words(value, 3)
    return text if len(text) <= 6 else f"{text[:5]}…"


# ---- one cell --------------------------------------------------------------------------------------

NEAR = 4  # elements on either side of the one that is touched


def outside(found: Outside, who: str, line: int, text: str) -> Moving:
    """An access beyond the edge of an array: its last elements, the edge, an arrow to where nothing is."""
    axis = next(
        (a for a, (i, n) in enumerate(zip(found.index, found.shape, strict=True)) if not 0 <= i < n), 0
    )
    at, size = found.index[axis], found.shape[axis]
    first = max(0, size - NEAR) if at >= size else 0
    inside = range(first, size if at >= size else min(size, NEAR))
    gap = at - size > NEAR if at >= size else at < -NEAR
    beyond = [at] if gap else range(size, at + 1) if at >= size else range(at, 0)
    cells = [(i, True) for i in inside]
    more = [(i, False) for i in beyond]
    shown = cells + more if at >= size else more + cells

    def name(i: int) -> str:
        return index_words(found.array, (*found.index[:axis], i, *found.index[axis + 1 :]))

    does = "reads" if found.did == "read" else "writes"
    last = name(size - 1)
    edge = f"the last element is {last}" if at >= size else f"the first element is {name(0)}"
    said = f"{who[:1].upper()}{who[1:]} {does} {name(at)} in line {line}, but {edge}."
    return _strip(found.array, shown, name, at, [(who, line, text, does)], said, gap)


def raced(race: Race) -> Moving:
    """Two threads that touch one cell with nothing to order them, as two arrows."""
    axis = len(race.element) - 1
    at = race.element[axis]
    cells = [(i, True) for i in range(max(0, at - NEAR), at + NEAR + 1)]
    label = race.label or "the shared array"

    def name(i: int) -> str:
        return index_words(label, (*race.element[:axis], i)) if race.label else f"element {i} of {label}"

    actors = []
    for touch in (race.first, race.second):
        who = who_words(touch.thread, touch.block)
        does = touch.verb or VERBS[touch.kind]
        actors.append((who, touch.line, source_text(touch.location), does))
    both = " and ".join(f"{who} {does} it in line {line}" for who, line, _, does in actors)
    said = f"Two threads meet at {name(at)}: {both}. Nothing orders the two."
    return _strip(label, cells, name, at, actors, said, False)


def _strip(
    array: str,
    cells: list[tuple[int, bool]],
    name: Any,
    at: int,
    actors: list[tuple[str, int, str, str]],
    said: str,
    gap: bool,
) -> Moving:
    """Some elements of an array in a row, and threads above with arrows to the one at `at`."""
    from gpulab.plot.moving import Drawing, Frame, Frames

    drawing = Drawing(500 if len(actors) > 1 else 440)
    wide = min(46.0, drawing.width / (len(cells) + 1))
    top, hit = 132.0, 0.0
    x = (drawing.width - wide * len(cells) - (wide if gap else 0)) / 2
    edge = None
    for number, (i, inside) in enumerate(cells):
        if number and cells[number - 1][1] != inside:
            edge = x + (wide / 2 if gap else 0)
            if gap:
                drawing.text(x + wide / 2, top + 22, "…", "soft middle")
                x += wide
        drawing.box(
            x,
            top,
            wide - 2,
            34,
            ("write" if i == at and len(actors) > 1 else "cell") if inside else "beyond",
            name(i),
        )
        drawing.text(x + wide / 2 - 1, top + 21, f"{i}", "mono small middle" + ("" if inside else " wrong"))
        hit = x + wide / 2 - 1 if i == at else hit
        x += wide
    if edge is not None:
        drawing.path(f"M{edge - 1:.1f} {top - 12}V{top + 46}", "arrow", top + 46)
        drawing.text(edge - 1, top + 60, f"the edge of {array}", "soft small middle")
    else:
        drawing.text(drawing.width / 2, top + 54, f"elements of {array}", "soft small middle")
    room = drawing.width / len(actors)
    for number, (who, line, text, does) in enumerate(actors):
        centre = room * (number + 0.5) if len(actors) > 1 else min(max(hit, 112), drawing.width - 112)
        drawing.box(centre - 112, 2, 224, 62, "plain", radius=8)
        drawing.text(centre, 20, who, "strong small middle")
        drawing.text(centre, 37, f"{does} it in line {line}", "small middle")
        drawing.text(centre, 54, text if len(text) < 33 else f"{text[:32]}…", "mono small middle soft")
        aim = hit + (10 * (2 * number - 1) if len(actors) > 1 else 0)
        drawing.arrow(centre, 66, aim, top - 4)
    return Frames(drawing, [Frame(said)], said.split(".")[0], "picture", 0, ()).figure()


def who_words(thread: tuple[int, int, int], block: tuple[int, int, int]) -> str:
    """A thread as short as its indices allow: ``thread 31 of block 3``."""
    if thread[1:] == (0, 0) and block[1:] == (0, 0):
        return f"thread {thread[0]} of block {block[0]}"
    return thread_words(thread, block)
