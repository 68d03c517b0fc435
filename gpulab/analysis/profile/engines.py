"""A model of streams and engines: when each copy and each kernel runs, if each takes the time that is said.

Modelled, not measured. A stream keeps the order of its operations. An engine (one that copies in, one that
copies out, the SMs) does one operation at a time, in the order in which they were issued, as a hardware queue
does. An operation may also wait for others, through events. Everything else may happen at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Operation:
    """A copy or a kernel, in the order in which the host issues it.

    `duration` is in any unit of time; `after` are the places, in the list of operations, of those whose end
    it waits for by an event.
    """

    stream: Any
    engine: str
    duration: float
    after: tuple[int, ...] = ()
    label: str = ""


@dataclass(frozen=True)
class Interval:
    """When an operation runs, in the unit of its duration."""

    start: float
    stop: float


def schedule(operations: Sequence[Operation]) -> tuple[Interval, ...]:
    """When each operation runs. Raises ValueError where one waits for an operation that is not issued yet."""
    stream_free: dict[Any, float] = {}
    engine_free: dict[str, float] = {}
    found: list[Interval] = []
    for place, each in enumerate(operations):
        if late := [other for other in each.after if not 0 <= other < place]:
            raise ValueError(
                f"operation {place} waits for operation {late[0]}, which is not issued before it"
            )
        ready = max((found[other].stop for other in each.after), default=0.0)
        start = max(ready, stream_free.get(each.stream, 0.0), engine_free.get(each.engine, 0.0))
        stop = start + each.duration
        stream_free[each.stream] = engine_free[each.engine] = stop
        found.append(Interval(start, stop))
    return tuple(found)


def makespan(operations: Sequence[Operation]) -> float:
    """When the last operation ends."""
    return max((interval.stop for interval in schedule(operations)), default=0.0)


def predecessors(operations: Sequence[Operation]) -> tuple[frozenset[int], ...]:
    """For each operation those that have ended whenever it starts, because streams and events say so.

    That two operations share an engine orders them in time, but is no promise: another GPU has more engines.
    """
    last: dict[Any, int] = {}
    found: list[frozenset[int]] = []
    for place, each in enumerate(operations):
        direct = {*each.after, *({last[each.stream]} if each.stream in last else ())}
        found.append(frozenset(direct.union(*(found[other] for other in direct))))
        last[each.stream] = place
    return tuple(found)
