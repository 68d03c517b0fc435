"""The barrier of a cluster, ``barrier.cluster``: a thread arrives, goes on, and waits later.

A phase is over when all threads of all blocks of the cluster that have not returned have arrived. Each thread
waits once for each of its arrivals before it arrives again (PTX ISA, barrier.cluster).
"""

from __future__ import annotations

import numpy as np

from . import branching
from .errors import DivergentBarrier
from .events import CLUSTER_BARRIER
from .program import Segment
from .run import ClusterMeeting, Run

Array = np.ndarray

EARLY = "waits at the barrier of its cluster before it has arrived there."
TWICE = "arrives at the barrier of its cluster again before it has waited there."


def come(run: Run, segment: Segment, number: int, lanes: Array | None) -> None:
    """Lanes arrive at the barrier of their cluster, and go on, or wait there."""
    meeting = run.meeting
    if meeting is None:
        zeros = np.zeros(run.shape, np.int32)
        meeting = run.meeting = ClusterMeeting(
            zeros, zeros.copy(), np.zeros(run.shape[0] // run.cluster_size, np.int32)
        )
    run.lanes = lanes
    here = run.mask()
    if segment.meeting.waits:
        _check(run, segment, here & (meeting.arrived == meeting.waited), EARLY)
        branching.join(run.at_cluster, number, lanes)
        release(run)
        return
    _check(run, segment, here & (meeting.arrived != meeting.waited), TWICE)
    meeting.arrived = meeting.arrived + here
    if "relaxed" not in run.program.instructions[segment.first].parts:
        first = np.broadcast_to(run.block_rows - run.ranks, run.shape)
        for hear in run.on_arrive:
            phase = (meeting.arrived - 1) % 2
            hear(segment.first, np.full((1, 1), CLUSTER_BARRIER), phase, here, run.chunk, first)
    _go_on(run, segment, lanes)
    release(run)


def _check(run: Run, segment: Segment, bad: Array, what: str) -> None:
    if bad.any():
        raise DivergentBarrier(
            **run.blame(segment.first, bad),
            what=what,
            advice="Each thread arrives once and then waits once in each phase.",
        )


def release(run: Run) -> None:
    """End the phases for which all threads have arrived, and let those go on that wait for their end."""
    meeting = run.meeting
    if meeting is None:
        return
    over = np.repeat(meeting.over, run.cluster_size)[:, None]
    alive = run.full(run.alive)
    lacking = _by_cluster(run, alive & (meeting.arrived <= over))
    there = _by_cluster(run, meeting.arrived > over)
    if (ended := there & ~lacking).any():
        meeting.over = meeting.over + ended
        run.changed()
    over = np.repeat(meeting.over, run.cluster_size)[:, None]
    for number in list(run.at_cluster):
        lanes = run.full(run.at_cluster[number])
        free = lanes & (meeting.arrived <= over)
        if free.any():
            _pass(run, meeting, number, lanes, free)


def _pass(run: Run, meeting: ClusterMeeting, number: int, lanes: Array, free: Array) -> None:
    segment = run.program.segments[number]
    if (rest := lanes & ~free).any():
        run.at_cluster[number] = rest
    else:
        del run.at_cluster[number]
    first = np.broadcast_to(run.block_rows - run.ranks, run.shape)
    for hear in run.on_pass:
        phase = meeting.waited % 2
        hear(segment.first, np.full((1, 1), CLUSTER_BARRIER), phase, free, run.chunk, first)
    meeting.waited = meeting.waited + free
    run.lanes = free
    run.protected = run.needed()
    _go_on(run, segment, free)


def _go_on(run: Run, segment: Segment, lanes: Array | None) -> None:
    run.lanes = lanes
    for hear in run.on_executed:
        hear(segment.first, segment.stop, lanes, run.chunk)
    run.spend(segment)
    branching.leave(run, segment, lanes)


def _by_cluster(run: Run, lanes: Array) -> Array:
    """For each cluster, whether it has one of the lanes (B, T)."""
    return np.asarray(lanes.reshape(-1, run.cluster_size * run.shape[1]).any(axis=1))
