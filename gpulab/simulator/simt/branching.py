"""Where lanes go at the end of a segment, one by one or apart."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

import numpy as np

from .errors import Endless, Trap
from .program import Branch, Segment, Stop, Table, Target
from .run import Run, place

Array = np.ndarray
FIRST = -1  # the turn of a team that comes before all others
Key = TypeVar("Key", bound=Hashable)


def leave(run: Run, segment: Segment, lanes: Array | None) -> None:
    """Send the lanes on to where the segment's end says."""
    end = segment.end
    if isinstance(end, int):
        add(run, end, lanes)
    elif isinstance(end, Branch):
        _branch(run, segment, end, lanes)
    elif isinstance(end, Table):
        _choose(run, segment, end, lanes)
    else:
        _go(run, segment, end, lanes)


def _branch(run: Run, segment: Segment, branch: Branch, lanes: Array | None) -> None:
    """Send each lane where its predicate says."""
    taken = run.registers[branch.guard]
    if branch.negated:
        taken = ~taken
    for hear in run.on_branch:
        hear(segment.stop - 1, lanes, taken, run.chunk)
    if taken.size == 1:
        _go(run, segment, branch.taken if taken.flat[0] else branch.other, lanes)
        return
    went = taken if lanes is None else taken & lanes
    if not went.any():
        _go(run, segment, branch.other, lanes)
        return
    stayed = ~taken if lanes is None else lanes & ~taken
    if not stayed.any():
        _go(run, segment, branch.taken, lanes)
        return
    _go(run, segment, branch.taken, went)
    _go(run, segment, branch.other, stayed)


def _choose(run: Run, segment: Segment, table: Table, lanes: Array | None) -> None:
    """Send each lane to the target whose number it has."""
    chosen = run.registers[table.slot]
    for hear in run.on_branch:
        hear(segment.stop - 1, lanes, chosen, run.chunk)
    for value in np.unique(chosen if lanes is None else np.broadcast_to(chosen, run.shape)[run.full(lanes)]):
        part = chosen == value
        add(run, table.targets[int(value)], part if lanes is None else part & lanes)


def _go(run: Run, segment: Segment, target: Target, lanes: Array | None) -> None:
    if isinstance(target, int):
        add(run, target, lanes)
        return
    if target is Stop.EXIT:
        _exit(run, lanes)
        return
    run.lanes = lanes
    if target is Stop.TRAP:
        raise Trap(**run.blame(segment.stop - 1), what="reached a trap: the kernel stopped itself.")
    raise Endless(
        **run.blame(segment.stop - 1),
        what="waits in a loop whose condition is never looked at again.",
        advice="The compiler may read a plain value once: wait with an atomic or a volatile read.",
    )


def add(run: Run, number: int, lanes: Array | None) -> None:
    """Lanes are about to run segment `number`; they join those that are there already.

    In a cluster, who returns does so at once: others may wrongly reach for what it takes along.
    """
    if run.cluster_size > 1 and run.program.segments[number].leaves:
        there = place(FIRST, number)
        run.last.add(there)
        join(run.ready, there, lanes)
        return
    if run.turns is None:
        there = place(0, number)
        run.last.add(there)
        join(run.ready, there, lanes)
        return
    full = run.full(lanes)
    turns = set(run.turns[run.by_warp(full).any(axis=-1)].tolist())
    for turn in turns:
        there = place(turn, number)
        run.last.add(there)
        join(run.ready, there, full & run.teams[turn] if len(turns) > 1 else full)


def join(groups: dict[Key, Array | None], key: Key, lanes: Array | None) -> None:
    """Lanes join those that are at a place already."""
    if key in groups:
        there = groups[key]
        groups[key] = None if there is None or lanes is None else there | lanes
    else:
        groups[key] = lanes


def _exit(run: Run, lanes: Array | None) -> None:
    """Lanes are at their end; those that wait for all others may go on without them."""
    run.changes += 1
    run.alive = run.nobody if lanes is None else run.full(run.alive) & ~run.full(lanes)
    run.exited = True
