"""Barriers of a block: when all threads have come, or as many as the barrier is for, they go on.

A barrier for a number of threads is met by whole warps (PTX ISA, bar and barrier): a thread may come and wait
(``bar.sync``), or come and go on (``bar.arrive``).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from . import branching
from .errors import DivergentBarrier
from .opcodes import is_aligned
from .program import Segment
from .run import Run
from .warps import WARP

Array = np.ndarray

WARPS = "A barrier is for whole warps: give a positive multiple of 32."
TURNS = "Let those who only arrive wait at another barrier until the others have taken notice."
COUNTS = "All who meet at a barrier must count on the same number of threads."
MEMBERS = "Count the threads of all warps that come to it, those that only arrive included."


def come(run: Run, segment: Segment, lanes: Array | None) -> None:
    """Lanes come to a barrier; at one for a number of threads it is written down.

    Raises DivergentBarrier for those for whom the barrier is not.
    """
    meeting = segment.meeting
    if meeting.count is None and not run.came:
        return
    for number, here in _by_number(run, segment, run.full(lanes)):
        came = run.came.get(number)
        if meeting.count is None and (came is None or not came.any()):
            continue
        if came is None:
            came = np.zeros(run.shape, np.int32)
            run.phases[number] = np.zeros((run.shape[0], 1), np.int32)
        if meeting.count is not None:
            came = _with_plain(run, number, came)
        every = np.array([[run.shape[1]]])  # what a barrier without a number is for
        count = every if meeting.count is None else meeting.count.value(run.registers)
        count = np.broadcast_to(count, run.shape)
        _check(run, segment, number, here, count, came)
        run.came[number] = np.where(here, count, came)
        for hear in run.on_arrive:
            hear(segment.first, np.full((1, 1), -1 - number), run.phases[number] % 2, here, run.chunk)


def _with_plain(run: Run, number: int, came: Array) -> Array:
    """The threads that have arrived, with those that wait at the same barrier for the whole block."""
    for where, lanes in run.at_barrier.items():
        if (segment := run.program.segments[where]).meeting.count is None:
            for its_number, there in _by_number(run, segment, run.full(lanes)):
                if its_number == number:
                    came = np.where(there, run.shape[1], came)
    return came


def _check(run: Run, segment: Segment, number: int, here: Array, count: Array, came: Array) -> None:
    wanted = came.max(axis=1, keepdims=True)
    threads = _threads(run, here | (came > 0))

    def refuse(bad: Array, what: str, advice: str) -> None:
        if bad.any():
            row, lane = np.argwhere(bad)[0]
            mine, theirs, coming = int(count[row, lane]), int(wanted[row, 0]), int(threads[row])
            told = what.format(number=number, mine=f"{mine:,}", theirs=f"{theirs:,}", coming=f"{coming:,}")
            run.lanes = None
            raise DivergentBarrier(**run.blame(segment.first, bad), what=told, advice=advice)

    refuse(
        here & ((count <= 0) | (count % WARP != 0)), "counts on {mine} threads at barrier {number}.", WARPS
    )
    refuse(here & (came > 0), "comes to barrier {number} again before it is complete.", TURNS)
    differs = here & (wanted > 0) & (count != wanted)
    refuse(differs, "counts on {mine} threads at barrier {number}, others there on {theirs}.", COUNTS)
    many = here & (threads[:, None] > count)
    refuse(many, "is one of {coming} threads that come to barrier {number} for {mine}.", MEMBERS)


def arrive(run: Run, segment: Segment, lanes: Array | None) -> None:
    """Lanes say that they have come, and go on."""
    come(run, segment, lanes)
    run.lanes = lanes
    for hear in run.on_executed:
        hear(segment.first, segment.stop, lanes, run.chunk)
    run.spend(segment)
    branching.leave(run, segment, lanes)


def missing(run: Run, segment: Segment) -> str:
    """The threads that this barrier or warp operation is still waiting for."""
    number, here = 0, run.mask()
    if segment.kind == "barrier":
        number, here = next(_by_number(run, segment, here))
    if segment.kind != "barrier" or number not in run.came or not (run.came[number] > 0)[here].any():
        return "threads that never come to it"
    row = int(here.any(axis=1).argmax())
    wanted, came = int(run.came[number][row].max()), int(_threads(run, run.came[number] > 0)[row])
    return f"{wanted:,} threads at barrier {number}, but only {came:,} come"


def _by_number(run: Run, segment: Segment, lanes: Array) -> Iterator[tuple[int, Array]]:
    """The barriers that the lanes of a segment name, each with its lanes."""
    name = segment.meeting.mask.value(run.registers)
    if name.size == 1:  # as nearly always
        yield int(name.flat[0]), lanes
        return
    for each in np.unique(np.broadcast_to(name, run.shape)[lanes]):
        yield int(each), lanes & (name == each)


def _threads(run: Run, came: Array) -> Array:
    """How many threads have come, by block: a warp counts as 32 when all its threads are there."""
    absent = run.by_warp(run.full(run.alive) & ~came).any(axis=-1)
    return WARP * (run.by_warp(came).any(axis=-1) & ~absent).sum(axis=-1)


def release(run: Run) -> None:
    """Let those blocks continue whose threads have all arrived at a barrier."""
    if not run.at_barrier and not run.came:
        return
    if run.at_barrier and run.alone() and not run.came:
        ((where, lanes),) = run.at_barrier.items()
        run.at_barrier.clear()
        _pass(run, run.program.segments[where], lanes)
        return
    waiting: dict[int, dict[int, Array]] = {number: {} for number in run.came}  # lanes at each segment
    for where, lanes in run.at_barrier.items():
        for number, there in _by_number(run, run.program.segments[where], run.full(lanes)):
            waiting.setdefault(number, {})[where] = there
    for number, parts in waiting.items():
        if number in run.came and run.came[number].any():
            _release_counted(run, number, parts)
        elif parts:
            _release_all(run, parts)


def _release_all(run: Run, parts: dict[int, Array]) -> None:
    """A barrier of all threads of a block."""
    arrived = np.logical_or.reduce(list(parts.values()))
    complete = (arrived | ~run.full(run.alive)).all(axis=1) & arrived.any(axis=1)
    if not complete.any():
        return
    parts = {n: here for n, part in parts.items() if (here := part & complete[:, None]).any()}
    if len(parts) > 1:
        _meet_from_several(run, parts)
    for where, part in parts.items():
        _let_go(run, where, part)


def _release_counted(run: Run, number: int, parts: dict[int, Array]) -> None:
    """A barrier for the number of threads that the arriving threads name."""
    came, phase = run.came[number], run.phases[number]
    complete = (_threads(run, came > 0) == came.max(axis=1)) & came.any(axis=1)
    if not complete.any():
        return
    run.came[number] = np.where(complete[:, None], 0, came)
    run.phases[number] = phase + complete[:, None]
    for where, part in parts.items():
        if (here := part & complete[:, None]).any():
            for hear in run.on_pass:
                first = run.program.segments[where].first
                hear(first, np.full((1, 1), -1 - number), phase % 2, here, run.chunk)
            _let_go(run, where, here)


def _let_go(run: Run, where: int, part: Array) -> None:
    """Lanes that wait at a segment go on."""
    rest = run.full(run.at_barrier[where]) & ~part
    if rest.any():
        run.at_barrier[where] = rest
    else:
        del run.at_barrier[where]
    run.lanes = part
    run.protected = run.needed()
    _pass(run, run.program.segments[where], part)


def _meet_from_several(run: Run, parts: dict[int, Array]) -> None:
    """Threads of one block wait at one barrier by different instructions: the hardware counts who comes, by
    warps, and lets them pass together.

    Raises DivergentBarrier where threads of one warp are apart, unless the instruction is ``barrier`` without
    ``.aligned``, which says that they may be.
    """
    segments, instructions = run.program.segments, run.program.instructions
    for hear in run.on_mixed:
        hear({segments[where].first: part for where, part in parts.items()}, run.chunk)
    aligned = [each for each in parts.items() if is_aligned(instructions[segments[each[0]].first])]
    for (first, part), (second, others) in combinations(aligned, 2):
        torn = (run.by_warp(part).any(axis=-1) & run.by_warp(others).any(axis=-1)).repeat(WARP, axis=1)
        if not torn.any():
            continue
        other = instructions[segments[second].first].location
        run.lanes = part & torn
        raise DivergentBarrier(
            **run.blame(segments[first].first),
            elsewhere=other,
            what="waits at this barrier, while other threads of its warp wait at another one"
            + (f" (line {other.line})." if other else "."),
            advice="All threads of a block must reach the same barrier: move it out of the branch.",
        )


def _pass(run: Run, segment: Segment, lanes: Array | None) -> None:
    run.lanes = lanes
    for hear in run.on_executed:
        hear(segment.first, segment.stop, lanes, run.chunk)
    for hear in run.on_barrier if _is_for_all(run, segment, lanes) else ():
        hear(segment.first, lanes, run.chunk)
    run.spend(segment)
    meeting = segment.meeting
    if meeting.compute is not None:
        values = [np.broadcast_to(v, run.shape) for v in meeting.given(run.registers)]
        run.hand_out(meeting.outputs, meeting.compute(*values, run.full(lanes)))
    branching.leave(run, segment, lanes)


def _is_for_all(run: Run, segment: Segment, lanes: Array | None) -> bool:
    """Whether all threads of the block wait at this barrier. Others are reported as arrivals."""
    count = segment.meeting.count
    if count is None or lanes is None:
        return True
    absent = (run.full(run.alive) & ~lanes).any(axis=1) & run.full(lanes).any(axis=1)
    return not absent.any()
