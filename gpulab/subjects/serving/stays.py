"""Who was in which slot and when: what a timeline is drawn from."""

from __future__ import annotations

from dataclasses import dataclass

from .engine import Run
from .requests import Request


@dataclass(frozen=True)
class Stay:
    """One request in one slot, from its admission to its last token."""

    slot: int
    start: float
    stop: float
    request: Request


def stays(run: Run) -> list[Stay]:
    """For each request of `run` that has finished, the slot that it held, and from when to when.

    A request gets the first slot that is free when it is admitted. Raises ValueError for a run in which a
    request was preempted, because its stay has gaps.

    >>> finished = run(Machine(slots=8, blocks=1000), traces.alternating(4), policies.static)
    >>> [stay.slot for stay in stays(finished)]
    [0, 1, 2, 3]
    """
    free = [0.0] * run.machine.slots
    found = []
    for life in sorted((life for life in run.lives if life.ended), key=lambda each: each.admitted or 0.0):
        if life.preempted:
            raise ValueError(f"request {life.request.number} was preempted: it has no single stay")
        start = life.admitted or 0.0
        slot = next(i for i, until in enumerate(free) if until <= start)
        free[slot] = life.tokens[-1]
        found.append(Stay(slot, start, life.tokens[-1], life.request))
    return found
