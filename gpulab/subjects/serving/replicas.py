"""Replicas behind a router: each has a queue of prompts and a cache of prompt blocks, nothing is measured.

A prompt is a list of block numbers; a block's number stands for its tokens *and everything before them*, so
that equal numbers mean equal beginnings. A replica computes the blocks of a prompt that it has no keys and
values for, from the first such block on, one after the other at a fixed rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

# What a router sees: the prompt's blocks; of each replica the cached blocks and the work that waits there.
Route = Callable[[list[int], list[dict[str, object]]], int]


@dataclass(frozen=True)
class Ran:
    """What happened to each request, in order of arrival.

    `replica` is where it went, `first` the seconds until its prompt was computed, `found` the blocks whose
    keys and values were there, `blocks` how many it has.
    """

    replica: tuple[int, ...]
    first: tuple[float, ...]
    found: tuple[int, ...]
    blocks: tuple[int, ...]

    @property
    def hits(self) -> float:
        """The share of blocks that were in a cache."""
        return sum(self.found) / sum(self.blocks)

    @property
    def mean(self) -> float:
        """Mean seconds to the first token."""
        return sum(self.first) / len(self.first)


def leading(blocks: Sequence[int], cached: set[int]) -> int:
    """How many blocks from the start on are cached, up to the first that is not."""
    return next((n for n, block in enumerate(blocks) if block not in cached), len(blocks))


def run(
    requests: Sequence[tuple[float, list[int]]],
    route: Route,
    *,
    replicas: int = 4,
    capacity: int = 200,
    rate: float = 100.0,
) -> Ran:
    """Send each of `requests`, (seconds, blocks), to the replica that `route` chooses when it arrives.

    A replica computes `rate` blocks a second, in order of arrival, and keeps the `capacity` blocks that were
    used last; of blocks used together the last of a prompt go first. `route` gets the blocks and for each
    replica ``{"cached": block numbers, sorted, "queued": blocks that are still to be computed}``. Raises
    ValueError for a replica that does not exist.
    """
    # By block: by which request it was used last, and how far from the start of its prompt it is.
    used: list[dict[int, tuple[int, int]]] = [{} for _ in range(replicas)]
    until = [0.0] * replicas
    went, first, found = [], [], []
    for number, (now, blocks) in enumerate(requests):
        state: list[dict[str, object]] = [
            {"cached": sorted(used[r]), "queued": max(0.0, until[r] - now) * rate} for r in range(replicas)
        ]
        chosen = route(list(blocks), state)
        if type(chosen) is not int or not 0 <= chosen < replicas:
            raise ValueError(f"there are replicas 0 to {replicas - 1}, and the router says {chosen!r}")
        known = leading(blocks, set(used[chosen]))
        until[chosen] = max(until[chosen], now) + (len(blocks) - known) / rate
        for place, block in enumerate(blocks):
            used[chosen][block] = number, -place
        while len(used[chosen]) > capacity:
            del used[chosen][min(used[chosen], key=lambda b: used[chosen][b])]
        went.append(chosen)
        first.append(until[chosen] - now)
        found.append(known)
    return Ran(tuple(went), tuple(first), tuple(found), tuple(len(blocks) for _, blocks in requests))


def traffic(kind: str, numbers: np.random.Generator, count: int = 240) -> list[tuple[float, list[int]]]:
    """(seconds, blocks) of `count` requests, drawn with `numbers`.

    `kind` is ``a popular start``, ``conversations`` that grow, ``both``, or ``all new``.
    """
    now, fresh, requests = 0.0, 1000, list[tuple[float, list[int]]]()
    talks: list[list[int]] = []
    popular = list(range(40))
    for _ in range(count):
        talk = kind == "conversations" or (kind == "both" and numbers.random() < 0.5)
        many = int(numbers.integers(4, 11))
        new = list(range(fresh, fresh + many))
        fresh += many
        if kind == "all new":
            blocks = new + list(range(fresh, fresh + 20))
            fresh += 20
            now += float(numbers.exponential(0.1))
        elif talk:
            old = len(talks) > 11 or (talks and numbers.random() < 0.7)
            at = int(numbers.integers(len(talks))) if old else len(talks)
            if not old:
                talks.append([])
            talks[at] = blocks = talks[at] + new
            if len(blocks) > 60:
                talks[at] = []
            now += float(numbers.exponential(0.035))
        else:
            blocks = (popular if numbers.random() < 0.8 else []) + new
            now += float(numbers.exponential(0.025))
        requests.append((round(now, 4), list(blocks)))
    return requests
