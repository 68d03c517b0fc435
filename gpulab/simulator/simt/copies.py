"""Copies on their way from global into shared memory, and the arrivals that wait for them, as records."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

Array = np.ndarray


@dataclass
class Pending:
    """Words on their way, sent by instruction `index`: `lanes` (B, T) are those whose copy has not arrived;
    `group` is the lane's own count. `brought` is how many of its bytes come from global memory."""

    index: int
    address: Array
    values: list[Array]
    lanes: Array
    group: Array
    brought: Array


@dataclass
class Arrival:
    """What ``cp.async.mbarrier.arrive`` asks for: that `lanes` arrive at `address` (B, T) when the `copies`
    that they had sent before are there."""

    index: int
    address: Array
    lanes: Array
    copies: list[Pending]


@dataclass
class Copies:
    """The copies of one chunk. `group` (B, T) is the number of groups that each lane has committed;
    `arrivals` are to come at mbarriers when their copies are there."""

    group: Array
    pending: list[Pending] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
