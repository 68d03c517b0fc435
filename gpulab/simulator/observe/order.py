"""What comes before what in a launch: the program of one thread, barriers, mbarriers, fences and atomics."""

from __future__ import annotations

from array import array
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from gpulab.simulator.simt import Access, Program

from .clocks import Clocks
from .race import ATOMIC, BLOCK_ATOMIC
from .shadow import Who, thread_of, tick_of

Array = np.ndarray

ACQUIRES, RELEASES = {"acquire", "acq_rel"}, {"release", "acq_rel"}

Counts = dict[int, int]  # how many of its releases are known, by block


@dataclass(frozen=True)
class _Release:
    """A thread released to others what it had written before its fence at time `fence`, to its own block what
    it had written before `fence_here`, and what its block and its warp had before the barriers at those
    times."""

    thread: int
    barrier: int
    warp_barrier: int
    fence: int
    fence_here: int


class Order:
    """Threads are numbered through the whole grid of `blocks` times `lanes`. Time, `now`, counts accesses,
    barriers and fences; a touch is a thread and a time. `copied`: bulk copies bring what others read."""

    def __init__(self, program: Program, blocks: int, lanes: int, copied: bool = False) -> None:
        self.now = 0
        self.met = False  # whether anybody has passed a barrier
        self._at = array("i", [0])  # the instruction of each time
        self._program, self._lanes = program, lanes
        self._fences = any(
            i.parts[0] in ("fence", "membar") or (ACQUIRES | RELEASES) & set(i.parts)
            for i in program.instructions
        )
        self._barrier = np.zeros(blocks, np.int64)  # when each block passed its last one …
        self._warp_barrier = np.zeros(blocks * lanes // 32, np.int64)  # … and each warp
        self._lane_barrier = np.zeros((0, 32), np.int64)  # by thread: when it waited for a lane of its warp
        # By block, of a cluster by its first one: what mbarriers tell.
        self._clocks: dict[int, Clocks] = {}
        self._home = np.arange(blocks)  # the first block of each block's cluster …
        self._rank = np.zeros(blocks, np.int64)  # … and its rank there
        self._cluster = 1  # blocks of a cluster
        # Whether threads know of each other by more than barriers, from the start: a warp may meet before the
        # first arrival at an mbarrier.
        self._keeps = copied or any(i.parts[0] == "mbarrier" for i in program.instructions)
        self._fenced = np.full(blocks * lanes, -1, np.int64)
        self._fenced_here = self._fenced.copy()  # by a fence of any scope
        self._releases: dict[int, list[_Release]] = defaultdict(list)  # by block
        self._released: dict[int, _Release] = {}  # by thread: its last one
        # by address; of shared memory and of atomics of a block by block and address
        self._published: dict[int | tuple[int, int], Counts] = defaultdict(dict)
        self._noticed: dict[int, Counts] = defaultdict(dict)  # by thread, which has not fenced since …
        self._acquired: dict[int, Counts] = defaultdict(dict)  # … and which has
        self._shared_out: dict[int, Counts] = defaultdict(dict)  # by block: what all its threads know

    def advance(self, index: int) -> None:
        """Something happens at an instruction: time goes on."""
        self.now += 1
        self._at.append(index)

    def index_of(self, touch: Array) -> Array:
        """The instructions of some touches."""
        return np.frombuffer(self._at, np.int32)[tick_of(touch)]

    @property
    def in_parts(self) -> bool:
        """Whether only some threads waited at some barriers."""
        return bool(len(self._lane_barrier) or self._clocks)

    def begin(self, blocks: Array, cluster_size: int) -> None:
        """These blocks begin, which are whole clusters, each in the order of its ranks."""
        self._keeps |= cluster_size > 1
        if not self._keeps:
            return
        self._cluster = cluster_size
        self._home[blocks] = np.repeat(blocks[::cluster_size], cluster_size)
        self._rank[blocks] = np.arange(len(blocks)) % cluster_size
        for first in blocks[::cluster_size].tolist():
            self._clocks[first] = Clocks((self._lanes + 1) * cluster_size)

    def _member(self, thread: Array) -> Array:
        """The numbers of threads in their blocks or, where there are clusters, in those."""
        return self._rank[thread // self._lanes] * self._lanes + thread % self._lanes

    # ---- barriers --------------------------------------------------------------------------------------

    def barrier(self, index: int, blocks: Array) -> None:
        """All threads of these blocks wait for each other."""
        self.advance(index)
        self.met = True
        self._barrier[blocks] = self.now
        for block in blocks.tolist() if self._keeps else ():
            self._meet_as_block(block)
        self._share_out(set(blocks.tolist()) if self._acquired else set())

    def _meet_as_block(self, block: int) -> None:
        """All threads of a block of a cluster know what the others do."""
        first = int(self._rank[block]) * self._lanes
        self._clocks[int(self._home[block])].meet(np.arange(first, first + self._lanes), self.now)

    def warp_sync(self, index: int, threads: Array) -> None:
        """These threads wait for those of them that are of their warp."""
        self.advance(index)
        self.met = True
        warp = threads >> 5
        self._warp_barrier[warp] = self.now
        for one in {who >> 5 for who in self._acquired}:
            self._tell_each_other(threads[warp == one])
        for block, clocks in self._clocks.items():
            mine = self._member(threads[self._home[threads // self._lanes] == block])
            for one in np.unique(mine // 32):
                clocks.meet(mine[mine // 32 == one], self.now)

    def lane_sync(self, index: int, threads: Array, masks: Array) -> None:
        """Each of these threads waits for the lanes of its warp that its mask names."""
        self.advance(index)
        self.met = True
        if not len(self._lane_barrier):
            self._lane_barrier = np.zeros((len(self._fenced), 32), np.int64)
        for mask in np.unique(masks):
            named = (int(mask) >> np.arange(32) & 1).astype(bool)
            group = threads[(masks == mask) & named[threads & 31]]
            if not len(group):
                continue
            warps, start = np.unique(group >> 5, return_index=True)
            known = np.maximum.reduceat(self._lane_barrier[group], start, axis=0)
            own = np.zeros((len(warps), 32), bool)
            own[np.searchsorted(warps, group >> 5), group & 31] = True
            known[own] = self.now
            self._lane_barrier[group] = known[np.searchsorted(warps, group >> 5)]
            for block, clocks in self._clocks.items():
                for warp in warps[self._home[warps * 32 // self._lanes] == block]:
                    clocks.meet(self._member(group[group >> 5 == warp]), self.now)
            if self._acquired:
                for warp in warps:
                    self._tell_each_other(group[group >> 5 == warp])

    def _tell_each_other(self, threads: Array) -> None:
        """What one of these threads has acquired the others have, too."""
        common: Counts = {}
        for who in threads.tolist():
            _merge(common, self._acquired.get(who, {}))
        for who in threads.tolist() if common else ():
            _merge(self._acquired[who], common)

    def _share_out(self, blocks: set[int]) -> None:
        """All threads of these blocks know what one of them has acquired."""
        for who in [who for who in self._acquired if who // self._lanes in blocks]:
            _merge(self._shared_out[who // self._lanes], self._acquired.pop(who))

    def arrive(self, block: int, address: int, parity: int, threads: Array) -> None:
        """`threads` arrive at an mbarrier of a block of their cluster, in the phase of `parity`."""
        home = int(self._home[block])
        clocks = self._clocks.setdefault(home, Clocks(self._lanes))
        clocks.arrive((block, address), parity, self._member(threads), self.now)

    def passed(self, block: int, address: int, parity: int, threads: Array) -> None:
        """They see that the phase is over."""
        home = int(self._home[block])
        if home in self._clocks:
            self._clocks[home].see((block, address), parity, self._member(threads))
        self._share_out(set((threads // self._lanes).tolist()) if self._acquired else set())

    def copies_arrive(self, block: int, address: int, parity: int, senders: Array) -> None:
        """Bulk copies that blocks `senders` of the cluster sent just now will arrive at an mbarrier."""
        engines = self._lanes * self._cluster + np.unique(self._rank[senders])
        self._clocks[int(self._home[block])].arrive((block, address), parity, engines, self.now)

    def is_there(self, touch: Array, who: Who) -> Array:
        """Lanes that know that what the bulk copies of a touch brought is there."""
        sender, tick = thread_of(touch) // self._lanes, tick_of(touch)
        home = self._home[who.block]
        there = np.zeros(len(touch), bool)
        for first in np.unique(home):
            here = (home == first) & (self._home[sender] == first)
            engine = self._lanes * self._cluster + self._rank[sender[here]]
            known = self._clocks[int(first)].before[self._member(who.thread[here]), engine]
            there[here] = known >= tick[here]
        return there

    # ---- fences and atomics ------------------------------------------------------------------------------

    def fence(self, index: int, threads: Array) -> None:
        """These threads fence, for all or, where the instruction says so, for their block."""
        self.advance(index)
        for_all = "cta" not in self._program.instructions[index].parts
        self._fenced_here[threads] = self.now
        if for_all:
            self._fenced[threads] = self.now
        for who in self._noticed.keys() & set(threads.tolist()) if self._noticed else ():
            noticed, block = self._noticed[who], who // self._lanes
            _merge(self._acquired[who], noticed if for_all else {block: noticed.get(block, 0)})

    def communicate(self, access: Access, kind: int, thread: Array, address: Array) -> None:
        """Atomic accesses: a thread that has fenced publishes its block's writes, and sees what others
        published; it has acquired that when it fences again. Without a fence nobody publishes anything."""
        if not self._fences:
            return
        parts = set(access.instruction.parts)
        for who, where in dict.fromkeys(zip(thread.tolist(), address.tolist(), strict=True)):
            block = who // self._lanes
            apart = access.space == "shared" or kind == BLOCK_ATOMIC
            published = self._published[(block, where) if apart else where]
            if access.kind != "store" and published:
                _merge((self._acquired if parts & ACQUIRES else self._noticed)[who], published)
            if access.kind == "load":
                continue
            if parts & RELEASES:
                self._fenced_here[who] = self.now
                self._fenced[who] = self.now if kind == ATOMIC else self._fenced[who]
            fence, here = int(self._fenced[who]), int(self._fenced_here[who])
            barriers = int(self._barrier[block]), int(self._warp_barrier[who >> 5])
            release = _Release(who, *barriers, fence, here)
            if here >= 0 and self._released.get(who) != release:
                self._released[who] = release
                self._releases[block].append(release)
            for known in (self._shared_out.get(block, {}), self._acquired.get(who, {})):
                _merge(published, known)
            _merge(published, {block: len(self._releases[block])})

    # ---- which threads waited for which --------------------------------------------------------------------

    def waited(self, touch: Array, who: Who) -> Array:
        """Lanes that have met the thread of a touch at a barrier since then."""
        other, tick = thread_of(touch), tick_of(touch)
        warp = who.thread >> 5
        same_warp = other >> 5 == warp
        met: Array = (other // self._lanes == who.block) & (tick < self._barrier[who.block])
        met |= same_warp & (tick < self._warp_barrier[warp])
        if len(self._lane_barrier):
            met |= same_warp & (tick < self._lane_barrier[who.thread, other & 31])
        return met

    def still_apart(self, apart: Array, touch: Array, who: Who, kind: int) -> Array:
        """The lanes of `apart` that no mbarrier, fence or atomic puts behind the touch."""
        other, tick = thread_of(touch), tick_of(touch)
        if self._clocks:
            for at in np.flatnonzero(apart & (self._home[other // self._lanes] == self._home[who.block])):
                apart[at] = not self._is_seen(int(other[at]), int(tick[at]), int(who.thread[at]))
        if self._releases:
            for at in np.flatnonzero(apart):
                apart[at] = not self._is_ordered(int(other[at]), int(tick[at]), int(who.thread[at]), kind)
        return apart

    def _is_ordered(self, first: int, tick: int, second: int, kind: int) -> bool:
        """Whether a touch of thread `first` at time `tick` comes before what thread `second` does now. Who
        reads by an atomic or volatile access needs no fence of its own."""
        block = first // self._lanes
        known = [self._shared_out.get(second // self._lanes, {}), self._acquired.get(second, {})]
        if kind >= ATOMIC:
            known.append(self._noticed.get(second, {}))
        count = max(counts.get(block, 0) for counts in known)
        here = block == second // self._lanes
        fenced = (self._fenced_here if here else self._fenced)[first] > tick
        for release in self._releases[block][:count]:
            fence = release.fence_here if here else release.fence
            if release.thread == first and fence > tick:
                return True
            same_warp = release.thread >> 5 == first >> 5
            for met in (release.barrier, release.warp_barrier if same_warp else -1):
                if met > tick and (fenced or fence > met):
                    return True
        return False

    def _is_seen(self, first: int, tick: int, second: int) -> bool:
        """Whether an mbarrier puts what thread `first` did at `tick` before what `second` does now."""
        clocks = self._clocks.get(int(self._home[first // self._lanes]))
        if clocks is None:
            return False
        mine, theirs = self._member(np.array([second, first]))
        return bool(clocks.before[mine, theirs] >= tick)


def _merge(counts: Counts, more: Counts) -> None:
    for block, count in more.items():
        counts[block] = max(counts.get(block, 0), count)
