"""What a race detector remembers of memory: for each granule who wrote it last, and who has read it since."""

from __future__ import annotations

import numpy as np

from .granules import WIDEST, Granules

Array = np.ndarray

NOBODY = -1
# The touches of a granule that are kept: its last writer, its first reader, another reader of the same warp
# and one of another warp. So whoever writes next, a reader that is somebody else is among them.
WRITER, READER, SECOND_READER, OTHER_READER = 0, 1, 2, 3
ROLES = 4


class Shadow(Granules):
    """Touches of `rows` stretches of memory, `width` granules each: arrays (ROLES, rows × width). Threads are
    numbered through the whole grid.

    `since` is the block's and `warp_since` the warp's count of barriers at the touch, `tick` the time of the
    touch, `index` its instruction. `kind` and `value` are of the last write. As long as all rows are `alike`,
    but for the values, one row is kept for them all.
    """

    arrays = dict.fromkeys(("since", "warp_since", "tick", "index", "kind", "value"), 0) | {"thread": NOBODY}

    def __init__(self, granule: int, width: int, rows: int = 1) -> None:
        super().__init__(granule, width)
        self.rows = rows
        self.alike = rows > 1
        self.touched = [False] * ROLES  # whether anybody has been noted in a role
        self.thread = np.full((ROLES, width), NOBODY, np.int32)
        self.since = np.zeros((ROLES, width), np.int32)
        self.warp_since = np.zeros((ROLES, width), np.int32)
        self.tick = np.zeros((ROLES, width), np.int32)
        self.index = np.zeros((ROLES, width), np.int32)
        self.kind = np.zeros(width, np.int8)
        self.value = np.zeros(rows * width, np.int64)

    def _refine(self, parts: int) -> None:
        super()._refine(parts)
        shift = np.arange(self.value.size) % parts * 8 * self.granule
        self.value = self.value >> shift & _ones(self.granule)

    def spread(self, blocks: Array, lanes: int) -> None:
        """Keep a row for each of the `blocks`, of `lanes` threads, whose rows were alike: from now on they
        differ."""
        self.alike = False
        for name in ("since", "warp_since", "tick", "index", "kind"):
            setattr(self, name, np.tile(getattr(self, name), self.rows))
        further = np.repeat((blocks - blocks[0]) * lanes, self.width).astype(np.int32)
        thread = np.tile(self.thread, self.rows)
        self.thread = np.where(thread == NOBODY, thread, thread + further)

    def note(self, role: int, place: Array, who: Who) -> None:
        """`who` touched `place`; where several did, the last one stays."""
        self.touched[role] = True
        self.thread[role][place] = who.thread
        self.since[role][place] = who.now
        self.warp_since[role][place] = who.warp_now
        self.tick[role][place] = who.tick
        self.index[role][place] = who.index


class Who:
    """The lanes of one access: global thread numbers (n,), the barriers they have passed, instruction and
    time."""

    def __init__(self, thread: Array, now: Array, warp_now: Array, index: int, tick: int):
        self.thread, self.now, self.warp_now, self.index, self.tick = thread, now, warp_now, index, tick

    def only(self, chosen: Array) -> Who:
        return Who(self.thread[chosen], self.now[chosen], self.warp_now[chosen], self.index, self.tick)


def written_bits(values: list[Array], granule: int, part: int) -> Array:
    """What an access writes into its granule number `part`, as an integer: equal values written twice do no
    harm. `values` are one array per vector element; the result has their shape."""
    width = values[0].dtype.itemsize
    first, inside = divmod(part * granule, width)
    whole = _bits(values[first])
    for i in range(1, granule // width):
        whole = whole | _bits(values[first + i]) << 8 * width * i
    return whole >> 8 * inside & _ones(granule)


def _bits(value: Array) -> Array:
    itemsize = value.dtype.itemsize
    return np.ascontiguousarray(value).view(f"i{itemsize}").astype(np.int64) & _ones(itemsize)


def _ones(nbytes: int) -> int:
    return (1 << 8 * nbytes) - 1 if nbytes < WIDEST else -1
