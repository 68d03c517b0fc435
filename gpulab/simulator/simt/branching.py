"""Where lanes go at the end of a segment, one by one or apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .errors import Endless, Trap
from .program import Segment

if TYPE_CHECKING:
    from .run import Run

Array = np.ndarray


def leave(run: Run, segment: Segment, lanes: Array | None) -> None:
    """Send the lanes on to where the segment's end says."""
    end = segment.end
    kind = end[0]
    if kind == "next":
        add(run, end[1], lanes)
    elif kind == "branch":
        _branch(run, segment, lanes)
    elif kind == "exit":
        _exit(run, lanes)
    elif kind == "trap":
        raise Trap(**run.blame(segment.stop - 1), what="reached a trap: the kernel stopped itself.")
    elif kind == "endless":
        raise Endless(
            **run.blame(segment.stop - 1),
            what="waits in a loop whose condition is never looked at again.",
            advice="The compiler may read a plain value once: wait with an atomic or a volatile read.",
        )
    else:
        chosen = run.registers[end[1]]
        for hear in run.on_branch:
            hear(segment.stop - 1, lanes, chosen, run.chunk)
        for value in np.unique(
            chosen if lanes is None else np.broadcast_to(chosen, run.shape)[run.full(lanes)]
        ):
            part = chosen == value
            add(run, end[2][int(value)], part if lanes is None else part & lanes)


def _branch(run: Run, segment: Segment, lanes: Array | None) -> None:
    """Send each lane where its predicate says."""
    _, guard, negated, target, other = segment.end
    taken = run.registers[guard]
    if negated:
        taken = ~taken
    for hear in run.on_branch:
        hear(segment.stop - 1, lanes, taken, run.chunk)
    if taken.size == 1:
        _go(run, target if taken.flat[0] else other, lanes, segment)
        return
    went = taken if lanes is None else taken & lanes
    if not went.any():
        _go(run, other, lanes, segment)
        return
    stayed = ~taken if lanes is None else lanes & ~taken
    if not stayed.any():
        _go(run, target, lanes, segment)
        return
    for place, part in ((target, went), (other, stayed)):
        _go(run, place, part, segment)


def _go(run: Run, target: int | str | None, lanes: Array | None, segment: Segment) -> None:
    if isinstance(target, int):
        add(run, target, lanes)
    elif target == "trap":
        run.lanes = lanes
        raise Trap(**run.blame(segment.stop - 1), what="reached a trap: the kernel stopped itself.")
    else:
        _exit(run, lanes)


def add(run: Run, number: int, lanes: Array | None) -> None:
    """Lanes are about to run segment `number`; they join those that are there already."""
    if not run.teams:
        run.last.add((0, number))
        join(run.ready, (0, number), lanes)
        return
    full = run.full(lanes)
    for place, team in enumerate(run.teams):
        part = full & team
        if part.any():
            run.last.add((place, number))
            join(run.ready, (place, number), part)


def join(groups: dict, key: object, lanes: Array | None) -> None:
    """Lanes come to those that are at a place already."""
    if key in groups:
        there = groups[key]
        groups[key] = None if there is None or lanes is None else there | lanes
    else:
        groups[key] = lanes


def _exit(run: Run, lanes: Array | None) -> None:
    """Lanes are at their end; those that wait for all others may go on without them."""
    run.changes += 1
    run.alive = run.full(run.alive) & ~run.full(lanes)
    run.exited = True
