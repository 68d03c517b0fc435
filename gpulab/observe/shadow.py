"""What a race detector remembers of memory: for each granule who wrote it last, and who has read it since."""

from __future__ import annotations

import numpy as np

Array = np.ndarray

NOBODY = -1
# The touches of a granule that are kept: its last writer, its first reader, another reader of the same warp
# and one of another warp. So whoever writes next, a reader that is somebody else is among them.
WRITER, READER, SECOND_READER, OTHER_READER = 0, 1, 2, 3
ROLES = 4


class Shadow:
    """Touches of a stretch of memory, arrays (ROLES, granules). Threads are numbered through the whole grid.

    `since` is the block's and `warp_since` the warp's count of barriers at the touch, `tick` the time of the
    touch,
    `index` its instruction. `kind` and `value` are of the last write.
    """

    def __init__(self, granules: int):
        self.thread = np.full((ROLES, granules), NOBODY, np.int64)
        self.since = np.zeros((ROLES, granules), np.int32)
        self.warp_since = np.zeros((ROLES, granules), np.int32)
        self.tick = np.zeros((ROLES, granules), np.int32)
        self.index = np.zeros((ROLES, granules), np.int32)
        self.kind = np.zeros(granules, np.int8)
        self.value = np.zeros(granules, np.int64)

    def widen(self, rows: int, old: int, new: int) -> None:
        """From `rows` stretches of `old` granules each to as many of `new`, what is known kept."""

        def wider(array: Array, fill: int) -> Array:
            apart = array[..., : rows * old].reshape(*array.shape[:-1], rows, old)
            pad = [(0, 0)] * (apart.ndim - 1) + [(0, new - old)]
            return np.pad(apart, pad, constant_values=fill).reshape(*array.shape[:-1], rows * new)

        self.thread = wider(self.thread, NOBODY)
        for name in ("since", "warp_since", "tick", "index", "kind", "value"):
            setattr(self, name, wider(getattr(self, name), 0))

    def note(self, role: int, place: Array, who: Who) -> None:
        """`who` touched `place`; where several did, the last one stays."""
        self.thread[role, place] = who.thread
        self.since[role, place] = who.now
        self.warp_since[role, place] = who.warp_now
        self.tick[role, place] = who.tick
        self.index[role, place] = who.index


class Who:
    """The lanes of one access: global thread numbers (n,), the barriers they have passed, instruction and
    time."""

    def __init__(self, thread: Array, now: Array, warp_now: Array, index: int, tick: int):
        self.thread, self.now, self.warp_now, self.index, self.tick = thread, now, warp_now, index, tick

    def only(self, chosen: Array) -> Who:
        return Who(self.thread[chosen], self.now[chosen], self.warp_now[chosen], self.index, self.tick)
