"""One queue and a few servers, played through: what queueing theory says something about."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Served:
    """One customer: when they came, began to be served, and left, in seconds."""

    arrival: float
    start: float
    stop: float

    @property
    def wait(self) -> float:
        return self.start - self.arrival

    @property
    def latency(self) -> float:
        return self.stop - self.arrival


def first_come_first_served(
    arrivals: Sequence[float], services: Sequence[float], servers: int = 1
) -> list[Served]:
    """Customers in the order of their arrivals, each served for so many seconds by who is free first."""
    free = [0.0] * servers
    found = []
    for arrival, service in zip(arrivals, services, strict=True):
        start = max(arrival, heapq.heappop(free))
        heapq.heappush(free, start + service)
        found.append(Served(arrival, start, start + service))
    return found


def closed_loop(clients: int, services: Sequence[float], thinking: float = 0.0) -> list[Served]:
    """`clients` that each send again `thinking` seconds after their answer: one server, services in turn.

    Whoever waits for an answer sends nothing: the slower the server, the fewer requests it gets.
    """
    ready = [(0.0, client) for client in range(clients)]
    free, found = 0.0, []
    for service in services:
        arrival, client = heapq.heappop(ready)
        start = max(arrival, free)
        free = start + service
        found.append(Served(arrival, start, free))
        heapq.heappush(ready, (free + thinking, client))
    return found


def in_system(served: Sequence[Served], until: float | None = None) -> float:
    """How many customers are there on average over time, up to `until` (the last departure by default).

    Counted by walking through all comings and goings, not by Little's law.
    """
    end = until if until is not None else max(each.stop for each in served)
    events = sorted([(s.arrival, 1) for s in served] + [(s.stop, -1) for s in served])
    area = now = 0.0
    there = 0
    for time, change in events:
        time = min(time, end)
        area, now, there = area + there * (time - now), time, there + change
    return area / end
