"""Barriers of a block: when all threads have come, the block goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import branching
from .errors import DivergentBarrier
from .meetings import Meeting, value_of
from .program import Segment

if TYPE_CHECKING:
    from .run import Run

Array = np.ndarray


def release(run: Run) -> None:
    """Let the blocks go on whose threads have all come to a barrier."""
    if not run.at_barrier:
        return
    if run.alone():
        ((number, lanes),) = run.at_barrier.items()
        segment = run.program.segments[number]
        if segment.meet.count is None:
            run.at_barrier.clear()
            _pass(run, segment, lanes)
            return
    waiting: dict[int, dict[int, Array]] = {}  # by the barrier's number, the lanes at each segment
    for number, lanes in run.at_barrier.items():
        there = run.full(lanes)
        name = value_of(run, run.program.segments[number].meet.mask)
        if name.size == 1:  # as nearly always
            waiting.setdefault(int(name.flat[0]), {})[number] = there
            continue
        for each in np.unique(np.broadcast_to(name, run.shape)[there]):
            waiting.setdefault(int(each), {})[number] = there & (name == each)
    for parts in waiting.values():
        _release_one(run, parts)


def _release_one(run: Run, parts: dict[int, Array]) -> None:
    arrived = np.logical_or.reduce(list(parts.values()))
    meeting: Meeting = run.program.segments[next(iter(parts))].meet
    if meeting.count is None:
        complete = (arrived | ~run.full(run.alive)).all(axis=1) & arrived.any(axis=1)
    else:
        count = np.broadcast_to(value_of(run, meeting.count), run.shape)[next(iter(parts.values()))]
        complete = arrived.sum(axis=1) == int(count[0])
    if not complete.any():
        return
    parts = {n: here for n, part in parts.items() if (here := part & complete[:, None]).any()}
    if len(parts) > 1 and meeting.count is None:
        _refuse_mixed(run, parts)
    for number, part in parts.items():
        rest = run.full(run.at_barrier[number]) & ~part
        if rest.any():
            run.at_barrier[number] = rest
        else:
            del run.at_barrier[number]
        run.lanes = part
        run.protected = run.needed()
        _pass(run, run.program.segments[number], part)


def _refuse_mixed(run: Run, parts: dict[int, Array]) -> None:
    """Threads of one block at two different barriers: the hardware would let them pass by accident."""
    there = [(n, part.any(axis=1)) for n, part in parts.items()]
    if not (there[0][1] & there[1][1]).any():
        return
    first, second = there[0][0], there[1][0]
    segments = run.program.segments
    other = run.program.instructions[segments[second].first].location
    run.lanes = parts[first]
    raise DivergentBarrier(
        **run.blame(segments[first].first),
        elsewhere=other,
        what="waits at this barrier, while other threads of its block wait at another one"
        + (f" (line {other.line})." if other else "."),
        advice="All threads of a block must reach the same barrier: move it out of the branch.",
    )


def _pass(run: Run, segment: Segment, lanes: Array | None) -> None:
    run.lanes = lanes
    for hear in run.on_executed:
        hear(segment.first, segment.stop, lanes, run.chunk)
    for hear in run.on_barrier:
        hear(segment.first, lanes, run.chunk)
    run.spend(segment)
    meeting: Meeting = segment.meet
    if meeting.compute is not None:
        values = [np.broadcast_to(v, run.shape) for v in meeting.given(run)]
        meeting.hand_out(run, meeting.compute(*values, run.full(lanes)))
    branching.leave(run, segment, lanes)
