"""The scheduler: which lanes of a chunk run next, when lanes wait for each other, and when none can go on.

**Segments and groups.** A GPU runs 32 threads, a warp, with one instruction at a time. The simulator goes
further: it runs all lanes of several blocks, a chunk, with one NumPy operation at a time. A lane is one
thread. The program is cut into segments, which are stretches of instructions that always run together, and
each of them became a list of steps when the kernel was loaded. Segments are numbered in the order of the
program's text. Lanes that are about to run the same segment form a group, and `run.ready` maps each place to
the lanes of the group that is there. `execute` repeats one simple thing until no group is left: choose a
group, run the steps of its segment for all its lanes at once, and move the lanes to the segments that follow.

**Divergence and reconvergence.** When a branch holds for only some lanes of a group, the group splits in two.
When lanes move to a segment at which a group waits already, they join it. No stack and no analysis of the
program is needed for this, only one rule: *the group with the lowest segment runs first*. Compilers put the
code that follows an ``if`` behind both of its sides, and the code that follows a loop behind the loop.
Because of the rule, lanes that are behind catch up with those ahead before these go on. A program that is
laid out otherwise gives the same results in more turns. Take an ``if`` that holds for lanes 0 to 7::

    segment 0   if x > 0:          turn   groups that are ready            runs
    segment 1       y = sqrt(x)    1      0: lanes 0–31                    segment 0, and splits
    segment 2   else: y = 0        2      1: lanes 0–7    2: lanes 8–31    segment 1
    segment 3   out[i] = y         3      2: lanes 8–31   3: lanes 0–7     segment 2, and joins
                                   4      3: lanes 0–31                    segment 3, together again

**Barriers.** Lanes that come to a barrier of the block leave `run.ready` for `run.at_barrier`. Those of a
block go on when all its threads that have not exited are there, or as many as the barrier is for
(`block_meetings`). Operations between the lanes of a warp, such as shuffles and votes, work in the same way
with `run.at_warp`: they are computed once, for all lanes that their mask names, when these have all come
(`warp_meetings`). ``wgmma`` needs all lanes of four warps, which wait there for each other as well
(`warpgroup_meetings`). Lanes that wait for all blocks of their cluster are in `run.at_cluster`
(`cluster_meetings`). Others may have waited for lanes that exit, so every exit is followed by a look at those
that wait. When no group is ready and some lanes still wait, nobody is left to release them, and the kernel is
at fault.

**Which warp runs next.** In lockstep, the usual schedule, all warps of the chunk are one team: a group holds
lanes of many warps and blocks, which costs the least time but hides a missing barrier, because no warp is
ever far ahead of another. Other schedules (`frame.Schedule`) divide the warps into teams: either each warp is
a team, or there are two teams and chance decides to which of them a warp belongs. Ready lanes of different
teams stay in different groups. A place is a pair, the team's turn and the segment, and places are compared in
this order. So the first team runs until all of its lanes wait or have exited, and only then does the next one
start. A seed draws the teams, their order and the order of the blocks, so every run can be repeated. Results
that differ from seed to seed show that a kernel depends on the order.

**Waiting for memory.** A lane that waits in a loop until another thread writes a flag or frees a lock is
not at a barrier: it keeps running. By the rule above it could run forever, while the lane that would write
the flag is further on in the text and never has its turn. So the scheduler has to notice that a group's looks
are fruitless. Certain segments look at what other threads do to memory (`Segment.looks`) because they have an
atomic, a fence or a volatile load. When a group is about to run such a segment with exactly the registers
that it had there before, and no memory has changed in between, the group goes in circles and is passed over.
A loop that counts its rounds never has the same registers twice. Therefore the looks since the last change
are counted as well (`run.idle`), and after `PATIENCE` of them the groups take turns, each until it has looked
as often without success. Any change of memory starts all of this afresh.

When no group of a chunk sees what it waits for, only another chunk can help, and `execute` yields. The engine
then lets other chunks run. If all chunks have yielded and nothing has changed, the launch is stuck, and
`stuck` says why.

**Loops without end.** A chunk that has run for long is watched for rounds that are all alike (`circles`). Of
other loops nobody can say whether they end, so they are stopped by a number of instructions or by the time
that they take (`Run.spend`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from . import (
    block_meetings,
    branching,
    circles,
    cluster_meetings,
    tensor_memory_steps,
    transfers,
    waits,
    warp_meetings,
    warpgroup_meetings,
)
from .errors import DivergentBarrier, Endless
from .executable import Step
from .run import PATIENCE, Place, Run

Array = np.ndarray

PLACES = {"barrier": "barrier", "cluster": "barrier of the cluster"}
MISSED = "Every thread that the operation waits for must reach it: move it out of the branch."


def execute(run: Run, steps: Sequence[Sequence[Step]]) -> Iterator[int]:
    """Run the chunk to its end; whenever it can only wait for another chunk it yields its state."""
    branching.add(run, run.program.first, run.alive)
    segments = run.program.segments
    turn: Place | None = None
    while run.ready:
        place = _choose(run, turn)
        if place is None:
            state = _state(run, turn)
            run.forget()
            yield state
            continue
        if run.spent > run.watch_after and circles.look(run, place):
            raise _in_circles(run, place)
        if place not in run.ran:
            run.ran.add(place)
            run.idle = 0
        lanes, turn = run.ready.pop(place), place
        run.last.clear()
        if run.ready or run.at_barrier or run.at_warp or run.at_cluster:
            run.protected = run.needed()
        else:
            lanes, run.protected = run.alive, 0
        run.lanes = lanes
        _run_segment(run, place.segment, steps[place.segment], lanes)
        while run.exited:
            run.exited = False
            block_meetings.release(run)
            cluster_meetings.release(run)
            for key in {s.meets.key for number in run.at_warp if (s := segments[number]).meets}:
                warp_meetings.release(run, key)
        if run.freed:
            warpgroup_meetings.try_again(run)
    _finish(run)


def _choose(run: Run, turn: Place | None) -> Place | None:
    """The group that runs next: the one with the lowest program counter, unless it goes in circles.

    None if all do. A group that counts its fruitless looks goes in no circles that can be seen: when there
    were many looks, all groups take turns, each until it has looked as often without success.
    """
    if run.idle < PATIENCE:
        if run.following and (goes_on := run.last & run.ready.keys()):
            return min(goes_on)
        if not run.idle:  # as nearly always: no look was fruitless
            return min(run.ready)
        return next((place for place in sorted(run.ready) if not _circles(run, place)), None)
    if run.idle >= PATIENCE * len(run.ready):
        return None
    run.following = True
    return min((place for place in run.ready if turn is not None and place > turn), default=min(run.ready))


def _circles(run: Run, place: Place) -> bool:
    """Whether a group is about to look at memory, and was here before just as it is (registers and local
    memory), and no other memory has changed since."""
    segment = run.program.segments[place.segment]
    if not run.idle or not segment.looks:
        return False
    lanes = run.full(run.ready[place])
    contents = (np.broadcast_to(r, run.shape)[lanes].tobytes() for r in run.contents(segment.live))
    kept = run.local[lanes].tobytes() if run.local_bytes else b""
    state = hash((place, lanes.tobytes(), run.clock * run.program.timed, *contents, kept, *_open_calls(run)))
    if state in run.visited:
        return True
    run.visited.add(state)
    return False


def _state(run: Run, turn: Place | None) -> int:
    """A hash of all that decides how the chunk goes on, but for memory."""
    contents = (register.tobytes() for register in run.contents(run.needed()))
    groups = (
        tuple((key, run.full(lanes).tobytes()) for key, lanes in sorted(places.items()))
        for places in (run.ready, run.at_barrier, run.at_warp, run.at_cluster)
    )
    kept = run.local.tobytes() if run.local_bytes else b""
    return hash((turn, run.clock * run.program.timed, *contents, *groups, kept, *_open_calls(run)))


def _open_calls(run: Run) -> list[bytes]:
    """What lanes will find again when they return."""
    return [] if run.stack is None else [array.tobytes() for array in run.stack.contents()]


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
    if segment.kind == "cluster":
        cluster_meetings.come(run, segment, number, lanes)
        return
    if segment.kind == "warp":
        branching.join(run.at_warp, number, lanes)
        warp_meetings.release(run, segment.meeting.key)
        return
    if segment.kind == "warpgroup":
        if not warpgroup_meetings.come(run, number, lanes):
            return
        lanes = run.lanes
    for hear in run.on_executed:
        hear(segment.first, segment.stop, lanes, run.chunk)
    run.spend(segment)
    for step in steps:
        step(run)
    branching.leave(run, segment, lanes)


def _finish(run: Run) -> None:
    """Nothing can run any more: either all lanes have exited, or some wait for what cannot come."""
    transfers.finish(run)
    waiting = dict(sorted({**run.at_barrier, **run.at_warp, **run.at_cluster}.items()))
    if not waiting:
        tensor_memory_steps.finish(run)
        return
    number, lanes = next(iter(waiting.items()))
    segment = run.program.segments[number]
    run.lanes = lanes
    if segment.kind == "warpgroup":
        where, (missing, advice) = "operation of a warpgroup", warpgroup_meetings.missing(run, segment)
    else:
        where = PLACES.get(segment.kind, "warp operation")
        missing, advice = block_meetings.missing(run, segment), MISSED
    others = [
        run.program.instructions[run.program.segments[n].first].location for n in waiting if n != number
    ]
    lines = sorted({str(o.line) for o in others if o is not None})
    elsewhere = f" Others wait at line {', '.join(lines)}." if lines else ""
    raise DivergentBarrier(
        **run.blame(segment.first),
        what=f"waits at this {where} for {missing}.{elsewhere}",
        elsewhere=next((o for o in others if o is not None), None),
        advice=advice,
    )


def _in_circles(run: Run, place: Place) -> Endless:
    """The fault of a chunk whose loop has the same round again and again."""
    segment = run.program.segments[place.segment]
    run.lanes = run.ready[place]
    return Endless(
        **run.blame(max(segment.stop - 1, segment.first)),
        what="goes round a loop forever: nothing that its condition depends on changes any more.",
        advice="Does each round change what the loop's condition looks at?",
    )


def stuck(run: Run, more: bool) -> Endless:
    """The fault of a chunk that waits for something that cannot come."""
    (_, number), lanes = next(iter(run.ready.items()))
    run.lanes = lanes
    if run.in_vain:
        return waits.at_mbarriers(run)
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
