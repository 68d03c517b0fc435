"""What the messages of a run add up to. Budgets on communication are limits on these counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Traffic:
    """All messages and calls of a run of `ranks` ranks, as sums: one message more takes no more memory.

    `links` are the bytes from one rank to another, and `sizes` says how many messages of an operation had so
    many bytes. `calls` says how often the group called a collective with so many bytes from the rank that
    gave most. `steps` is the longest chain of messages that waited for one another.

    Example: ``traffic["busiest sender"]``, ``traffic["calls of all_reduce"]``, ``traffic.links[0, 1]``.
    """

    ranks: int
    links: Counter[tuple[int, int]] = field(default_factory=Counter)
    sizes: Counter[tuple[str, int]] = field(default_factory=Counter)
    calls: Counter[tuple[str, int]] = field(default_factory=Counter)
    steps: int = 0
    messages: int = 0

    def add(self, sender: int, receiver: int, size: int, step: int, operation: str) -> None:
        """Count one message of `size` bytes; `step` is its place in its chain, from 1."""
        self.links[sender, receiver] += size
        self.sizes[operation, size] += 1
        self.steps = max(self.steps, step)
        self.messages += 1

    @property
    def sent(self) -> list[int]:
        """Bytes that each rank sent."""
        return [sum(n for (a, _), n in self.links.items() if a == rank) for rank in range(self.ranks)]

    @property
    def received(self) -> list[int]:
        """Bytes that each rank received."""
        return [sum(n for (_, b), n in self.links.items() if b == rank) for rank in range(self.ranks)]

    def __getitem__(self, metric: str) -> float:
        """A count of `COUNTS`, ``calls of NAME``, or ``bytes of NAME``. Raises KeyError for any other."""
        if metric.startswith("calls of "):
            return _sum(self.calls, metric.removeprefix("calls of "), lambda size: 1)
        if metric.startswith("bytes of "):
            return _sum(self.sizes, metric.removeprefix("bytes of "), lambda size: size)
        return COUNTS[metric](self)


def _sum(found: Counter[tuple[str, int]], name: str, weight: Callable[[int], int]) -> int:
    return sum(weight(size) * count for (operation, size), count in found.items() if operation == name)


COUNTS: dict[str, Callable[[Traffic], float]] = {
    "bytes": lambda t: t.links.total(),
    "busiest sender": lambda t: max(t.sent, default=0),
    "busiest receiver": lambda t: max(t.received, default=0),
    "messages": lambda t: t.messages,
    "steps": lambda t: t.steps,
}
