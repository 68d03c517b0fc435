"""Bulk copies on their way, as records: what they read, what they write, and what reports their end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .memory import Allocation

Array = np.ndarray


@dataclass(slots=True)
class Reach:
    """Elements of memory: `places` (M, E) in the array `view`; of global memory also the allocation."""

    view: Array
    places: Array
    allocation: Allocation | None = None


@dataclass(slots=True)
class Flight:
    """M copies of E elements each, sent by instruction `index`: the n-th by the thread `row[n]`, `lane[n]`.

    `target` is written from `source`, or from `values` (M, E) where these are known already. Elements that
    are not `inside` (None: all are) become `fill`, or stay as they are where `fill` is None. With `function`,
    what is there and what comes are combined. A copy is part of the bulk group number `group` of its thread,
    or its `nbytes` are counted at the mbarrier at `barrier` of the block in row `barrier_row`.
    `waiting` are the copies that have not been written, `unread` those whose source has not been read.
    """

    index: int
    row: Array
    lane: Array
    nbytes: Array
    target: Reach
    source: Reach | None = None
    values: Array | None = None
    inside: Array | None = None
    fill: Array | None = None
    function: Callable[..., Array] | None = None
    group: Array | None = None
    barrier: Array | None = None
    barrier_row: Array | None = None
    waiting: Array = field(init=False)
    unread: Array = field(init=False)
    cover: tuple[bytes, Array] | None = None  # of shared memory, see `unread`

    def __post_init__(self) -> None:
        self.waiting = np.ones(self.row.size, bool)
        self.unread = np.full(self.row.size, self.source is not None)


@dataclass(slots=True)
class Flights:
    """The bulk copies of one chunk. `group` (B, T) is the number of bulk groups that each lane has committed;
    `draw` decides which copies are done at once."""

    group: Array
    draw: np.random.Generator
    going: list[Flight] = field(default_factory=list)


def unread(shared: Array, flight: Flight) -> Array | None:
    """The bytes of shared memory (B, bytes) that a store has still to read; None if there are none."""
    if flight.source is None or flight.target.allocation is None or not flight.unread.any():
        return None
    key = flight.unread.tobytes()
    if flight.cover is None or flight.cover[0] != key:
        found = np.zeros(shared.size, bool)
        found.reshape(-1, flight.source.view.itemsize)[flight.source.places[flight.unread].reshape(-1)] = True
        flight.cover = key, found.reshape(shared.shape)
    return flight.cover[1]
