"""What a race detector remembers of memory: the last writer of each granule, and its readers since then."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpulab.simulator.simt import Access

from .granules import WIDEST, Granules, Pages

Array = np.ndarray

NOBODY = 0
TICK_BITS = 32  # of a touch: the time, which starts at 1; the bits above are the thread
# The touches of a granule that are kept: its last writer, its first reader, another reader of the same warp
# and one of another warp. So whoever writes next, a reader that is somebody else is among them.
WRITER, READER, SECOND_READER, OTHER_READER = 0, 1, 2, 3
ROLES = 4
REMEMBERED = 16  # groups of lanes that are kept


class Shadow(Granules):
    """Touches of `rows` stretches of memory, `width` granules each. Threads are numbered through the whole
    grid.

    `touch` (ROLES, rows × width) says who touched each granule and when, or `NOBODY`; `kind` and `value` are
    of the last write. `last` is the time of the last touch in each role; what happened up to `quiet` comes
    before all that follows. As long as all rows are `alike`, but for the values, one row is kept for all.
    Of touches that are looked at `within_warps` only those of one warp can race.
    """

    arrays = ("touch", "kind", "value")

    def __init__(
        self,
        granule: int,
        width: int,
        rows: int = 1,
        alike: bool = False,
        pages: Pages | None = None,
        within_warps: bool = False,
    ) -> None:
        super().__init__(granule, width, pages)
        self.rows, self.alike, self.within_warps = rows, alike, within_warps
        self.last = [0] * ROLES
        self.quiet = 0
        self._put_off: list[Read] = []
        self._kept = 0  # addresses of these reads
        kept = width if alike else rows * width
        self.touch = np.zeros((ROLES, kept), np.int64)
        self.kind = np.zeros(kept, np.int8)
        self.value = np.zeros(rows * width, np.int64)

    def _refine(self, parts: int) -> None:
        super()._refine(parts)
        shift = np.arange(self.value.size) % parts * 8 * self.granule
        self.value = self.value >> shift & _ones(self.granule)

    def spread(self, blocks: Array, lanes: int) -> None:
        """Keep a row for each of the `blocks`, of `lanes` threads, whose rows were alike: from now on they
        differ."""
        self.alike = False
        self.kind = np.tile(self.kind, self.rows)
        further = np.repeat((blocks - blocks[0]) * lanes, self.width) << TICK_BITS
        touch = np.tile(self.touch, self.rows)
        self.touch = np.where(touch == NOBODY, touch, touch + further)

    def note(self, role: int, place: Array, who: Who) -> None:
        """Note that the threads `who` touched `place`; of several at one place, the last is kept."""
        self.last[role] = max(self.last[role], who.tick)
        self.touch[role][place] = who.touch

    def waits(self, role: int) -> bool:
        """Whether some earlier access in this role may not be ordered before the present one."""
        return self.last[role] > self.quiet

    def put_off(self, access: Access, tick: int) -> int:
        """Keep a read until somebody may write to its place. How many addresses are kept so far."""
        self._put_off.append(Read(access, tick))
        self._kept += access.address.size
        return self._kept

    def take_put_off(self) -> list[Read]:
        """The reads that were put off, in their order; they are kept no longer."""
        reads, self._put_off, self._kept = self._put_off, [], 0
        return reads

    def has_put_off(self, write: Access) -> bool:
        """Whether a read that was put off may touch what `write` touches."""
        if not self._put_off:
            return False
        low, high = _range(write)
        return any(read.range[0] < high and low < read.range[1] for read in self._put_off)


@dataclass
class Read:
    """A read of shared memory of which nobody need know before the next write to its place. Most often a
    barrier comes first."""

    access: Access
    tick: int

    @cached_property
    def range(self) -> tuple[int, int]:
        return _range(self.access)


def _range(access: Access) -> tuple[int, int]:
    """The first byte and the one after the last of all lanes."""
    address, lanes = access.address, access.lanes
    if lanes is not None:
        shape = np.broadcast_shapes(address.shape, lanes.shape)
        address = np.broadcast_to(address, shape)[np.broadcast_to(lanes, shape)]
    return int(address.min()), int(address.max()) + access.size


class Lanes:
    """The lanes of a group, one after the other: `row` of the chunk's `blocks`, each of `width` lanes; and
    their `thread` and `block` in the grid. `chosen` is as `lanes` in `gpulab.simulator.simt.events`."""

    def __init__(self, chosen: Array | None, blocks: Array, width: int) -> None:
        self.chosen = chosen
        self._shape = len(blocks), width
        self._place = None if chosen is None else np.flatnonzero(np.broadcast_to(chosen, self._shape))
        place = np.arange(len(blocks) * width) if self._place is None else self._place
        self.row, self._lane = np.divmod(place, width)
        self.block = blocks[self.row]
        self.thread = self.block * width + self._lane

    def of(self, x: Array) -> Array:
        """What `x`, broadcastable to (blocks, width), holds for each of them."""
        if x.shape == self._shape:
            flat = x.reshape(-1)
            return flat if self._place is None else flat[self._place]
        if x.shape[0] == 1:
            return np.broadcast_to(x[0], self._shape[1])[self._lane]
        return np.broadcast_to(x[:, 0], self._shape[0])[self.row]


class Groups:
    """The lanes of groups in blocks of `width` lanes. Most groups come many times, so some are kept."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._kept: dict[tuple[int, int, int], Lanes] = {}  # by lanes, first block, number of blocks

    def of(self, lanes: Array | None, blocks: Array) -> Lanes:
        key = id(lanes), int(blocks[0]), len(blocks)  # an array that is kept lives, and its id with it
        known = self._kept.get(key)
        if known is None:
            if len(self._kept) == REMEMBERED:
                self._kept.clear()
            known = self._kept[key] = Lanes(lanes, blocks, self._width)
        return known


class Who:
    """The lanes of one access: global thread numbers (n,), blocks, and the time."""

    def __init__(self, thread: Array, block: Array, tick: int) -> None:
        self.thread, self.block, self.tick = thread, block, tick

    @cached_property
    def touch(self) -> Array:
        return self.thread << TICK_BITS | self.tick

    def only(self, chosen: Array) -> Who:
        return Who(self.thread[chosen], self.block[chosen], self.tick)


def thread_of(touch: Array) -> Array:
    return touch >> TICK_BITS


def tick_of(touch: Array) -> Array:
    return touch & (1 << TICK_BITS) - 1


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
