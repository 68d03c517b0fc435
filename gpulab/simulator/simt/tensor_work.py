"""What threads have asked the tensor cores of Blackwell to do, and they have not done yet, as records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

Array = np.ndarray


class Signal(NamedTuple):
    """Arrivals that a ``tcgen05.commit`` makes: at the mbarriers at `offset` of the blocks in `rows` (n,)."""

    offset: int
    rows: Array


@dataclass(slots=True)
class Task:
    """Something to do for the thread `lane` of the block in `row`: `do` is called once, later.

    A task with a `signal` is a commit: it arrives when all that its thread asked for before it is done.
    """

    row: int
    lane: int
    do: Callable[[], None] | None
    signal: Signal | None = None


@dataclass(slots=True)
class TensorWork:
    """The tasks of one chunk, in the order in which they were asked for."""

    tasks: list[Task] = field(default_factory=list)
