"""Which group of lanes runs next, and what it means that none can.

A group is a segment and the lanes that are about to run it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from . import block_meetings, branching, warp_meetings
from .errors import DivergentBarrier, Endless
from .executable import Step
from .run import PATIENCE, Place, Run

Array = np.ndarray


def execute(run: Run, steps: Sequence[Sequence[Step]]) -> Iterator[int]:
    """Run the chunk to its end; whenever it can only wait for another chunk it yields its state."""
    branching.add(run, 0, run.alive)
    segments = run.program.segments
    turn: Place | None = None
    while run.ready:
        place = _choose(run, turn)
        if place is None:
            state = _state(run, turn)
            run.forget()
            yield state
            continue
        if place not in run.ran:
            run.ran.add(place)
            run.idle = 0
        lanes, turn = run.ready.pop(place), place
        run.last.clear()
        if run.ready or run.at_barrier or run.at_warp:
            run.protected = run.needed()
        else:
            lanes, run.protected = run.alive, 0
        run.lanes = lanes
        _run_segment(run, place.segment, steps[place.segment], lanes)
        while run.exited:
            run.exited = False
            block_meetings.release(run)
            for key in {segments[number].meeting.key for number in run.at_warp}:
                warp_meetings.release(run, key)
    _finish(run)


def _choose(run: Run, turn: Place | None) -> Place | None:
    """The group that runs next: the one with the lowest program counter, unless it goes in circles.

    None if all do. A group that looks in vain and counts its looks goes in no circles that can be seen:
    when there were many looks, all groups take turns, each until it has looked in vain as often.
    """
    if run.idle < PATIENCE:
        if run.following and (goes_on := run.last & run.ready.keys()):
            return min(goes_on)
        return next((place for place in sorted(run.ready) if not _circles(run, place)), None)
    if run.idle >= PATIENCE * len(run.ready):
        return None
    run.following = True
    return min((place for place in run.ready if turn is not None and place > turn), default=min(run.ready))


def _circles(run: Run, place: Place) -> bool:
    """Whether a group is about to look at memory, and was here before just as it is, and no memory has
    changed since."""
    segment = run.program.segments[place.segment]
    if not run.idle or not segment.looks:
        return False
    lanes = run.full(run.ready[place])
    contents = (np.broadcast_to(r, run.shape)[lanes].tobytes() for r in run.contents(segment.live))
    state = hash((place, lanes.tobytes(), run.clock * run.program.timed, *contents))
    if state in run.visited:
        return True
    run.visited.add(state)
    return False


def _state(run: Run, turn: Place | None) -> int:
    """A hash of all that decides how the chunk goes on, but for memory."""
    contents = (register.tobytes() for register in run.contents(run.needed()))
    groups = (
        tuple((key, run.full(lanes).tobytes()) for key, lanes in sorted(places.items()))
        for places in (run.ready, run.at_barrier, run.at_warp)
    )
    return hash((turn, run.clock * run.program.timed, *contents, *groups))


def _run_segment(run: Run, number: int, steps: Sequence[Step], lanes: Array | None) -> None:
    """Run one segment for a group, or let its lanes wait there for others."""
    segment = run.program.segments[number]
    if segment.kind == "barrier":
        if segment.meeting.waits:
            block_meetings.come(run, segment, lanes)
            branching.join(run.at_barrier, number, lanes)
        else:
            block_meetings.arrive(run, segment, lanes)
        block_meetings.release(run)
        return
    if segment.kind == "warp":
        branching.join(run.at_warp, number, lanes)
        warp_meetings.release(run, segment.meeting.key)
        return
    for hear in run.on_executed:
        hear(segment.first, segment.stop, lanes, run.chunk)
    run.spend(segment)
    for step in steps:
        step(run)
    branching.leave(run, segment, lanes)


def _finish(run: Run) -> None:
    """Nothing can run any more: either all lanes have exited, or some wait for what cannot come."""
    waiting = dict(sorted({**run.at_barrier, **run.at_warp}.items()))
    if not waiting:
        return
    number, lanes = next(iter(waiting.items()))
    segment = run.program.segments[number]
    run.lanes = lanes
    where = "barrier" if number in run.at_barrier else "warp operation"
    others = [
        run.program.instructions[run.program.segments[n].first].location for n in waiting if n != number
    ]
    lines = sorted({str(o.line) for o in others if o is not None})
    elsewhere = f" Others wait at line {', '.join(lines)}." if lines else ""
    raise DivergentBarrier(
        **run.blame(segment.first),
        what=f"waits at this {where} for {block_meetings.missing(run, segment)}.{elsewhere}",
        elsewhere=next((o for o in others if o is not None), None),
        advice="Every thread that the operation waits for must reach it: move it out of the branch.",
    )


def stuck(run: Run, more: bool) -> Endless:
    """The fault of a chunk that waits for something that cannot come."""
    (_, number), lanes = next(iter(run.ready.items()))
    run.lanes = lanes
    if run.in_vain:
        return Endless(
            **run.blame(run.program.segments[number].first),
            what="waits at an mbarrier for arrivals that never come.",
            advice="Do as many threads arrive, in each phase, as it was initialised for?",
        )
    what = (
        "waits for a block that cannot be resident: the device is full of blocks that wait."
        if more
        else "waits for a change of memory that no other thread makes."
    )
    return Endless(
        **run.blame(run.program.segments[number].first),
        what=what,
        advice="Blocks may only wait for blocks that are sure to be running.",
    )
