"""Lanes that wait at an mbarrier for what cannot come, in words: which wait where, and what is missing."""

from __future__ import annotations

import re

import numpy as np

from gpulab.simulator.ptx import Location

from .errors import Endless, source_text, thread_words
from .mbarrier_words import coming, expected, parity, pending
from .run import Run, Wait
from .types import I64

Array = np.ndarray

LISTED = 6  # waits at other lines that a message names


def at_mbarriers(run: Run) -> Endless:
    """The fault of a chunk whose threads wait at mbarriers, and cannot go on."""
    waits = {index: lanes for index, wait in run.waits.items() if (lanes := _still(run, wait)).any()}
    index, lanes = min(waits.items()) if waits else next((i, w.lanes) for i, w in run.waits.items())
    what, advice = _told(run, index, lanes)
    lines = [f"waits at {what}"]
    for other in sorted(waits.keys() - {index})[:LISTED]:
        lines.append(_elsewhere(run, other, waits[other]))
    lines += _at_barriers(run)
    run.lanes = lanes
    return Endless(**run.blame(index, lanes), what="\n".join(lines), advice=advice)


def _still(run: Run, wait: Wait) -> Array:
    """The lanes that found their phase unfinished, have not returned, and whose phase is still unfinished."""
    word = _words(run, wait)
    return wait.lanes & run.full(run.alive) & (parity(word) == wait.parity)


def _words(run: Run, wait: Wait) -> Array:
    view = run.shared.view(I64)
    places = np.where(wait.lanes, wait.row * view.shape[1] + wait.address // 8, 0)
    return view.reshape(-1)[places]


def _told(run: Run, index: int, lanes: Array) -> tuple[str, str]:
    """What the first of the lanes waits for, and what to look at."""
    wait = run.waits[index]
    row, lane = np.unravel_index(int(lanes.argmax()), run.shape)
    word = _words(run, wait)[row, lane]
    owner = int(wait.row[row, lane])
    lacks, of, more = int(pending(word)), int(expected(word)), int(coming(word))
    missing = []
    if lacks:
        missing.append(f"{lacks:,} of {of:,} arrival{'' if of == 1 else 's'}")
    if more > 0:
        missing.append(f"{more:,} bytes that were announced")
    place = _name(run, int(wait.address[row, lane]))
    whose = "" if owner == row else f" of block {run.block(owner)}"
    what = (
        f"the mbarrier {place}{whose} for the end of the phase of parity {int(wait.parity[row, lane])}, "
        f"which lacks {' and '.join(missing) or 'nothing'}."
    )
    if more < 0:
        what += f" {-more:,} bytes came that nobody had announced."
    return what, _advice(lacks, of, more)


def _advice(lacks: int, of: int, more: int) -> str:
    if more > 0 and not lacks:
        return "Do the copies bring as many bytes as expect_tx announces?"
    if more < 0:
        return "Does expect_tx announce the bytes of every copy?"
    if lacks == of:
        return (
            "No thread has arrived in this phase. Does each thread that should arrive reach that line? Is "
            "the parity of the wait right? It changes each time that a barrier is used again. Was the "
            "barrier initialised for as many arrivals as come in each phase?"
        )
    return "Do as many threads arrive, in each phase, as it was initialised for?"


def _elsewhere(run: Run, index: int, lanes: Array) -> str:
    location = run.program.instructions[index].location
    row, lane = np.unravel_index(int(lanes.argmax()), run.shape)
    count = int(lanes.sum()) - 1
    others = f" (and {count:,} more)" if count else ""
    who = thread_words(run.thread(int(lane)), run.block(int(row)))
    return f"{_line(location)}{who}{others} waits at {_told(run, index, lanes)[0]}"


def _at_barriers(run: Run) -> list[str]:
    """Lanes that wait at barriers of the block or the cluster meanwhile."""
    lines = []
    for number, lanes in sorted({**run.at_barrier, **run.at_cluster}.items()):
        segment = run.program.segments[number]
        of = "cluster" if segment.kind == "cluster" else "block"
        count = int(run.full(lanes).sum())
        who = "1 thread waits" if count == 1 else f"{count:,} threads wait"
        lines.append(
            f"{_line(run.program.instructions[segment.first].location)}{who} at a barrier of the {of}."
        )
    return lines


def _line(location: Location | None) -> str:
    if location is None:
        return "Elsewhere: "
    text = source_text(location)
    return f"    {location.line} │ {text}\n" if text else f"Line {location.line}: "


def _name(run: Run, offset: int) -> str:
    """An mbarrier by the name of the shared variable that holds it."""
    for name, (start, nbytes) in run.program.shared_variables.items():
        if start <= offset < start + nbytes:
            shown = _of_mangled(name)
            return shown if nbytes == 8 else f"at byte {offset - start:,} of {shown}"
    return f"at byte {offset:,} of shared memory"


def _of_mangled(name: str) -> str:
    """The last name in one that a C++ compiler has mangled, such as ``_ZZ5twiceE4full``."""
    for found in re.finditer(r"\d+", name) if name.startswith("_Z") else ():
        rest = name[found.end() :]
        if len(rest) == int(found[0]) or rest[int(found[0]) :].startswith("_"):
            return rest[: int(found[0])]
    return name
