"""Data races: two threads, one word, at least one write, and nothing that puts one before the other.

What orders two accesses: the program of one thread, a barrier of the block, ``syncwarp`` between lanes of one
warp, an mbarrier between those who arrive and those who wait, and between blocks an atomic (or volatile)
access after a fence that another block has seen, with a fence after it, too. The detector does not need the
race to go wrong: it remembers who touched each word last, and what has happened since.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from gpulab.simt import Access, Allocation, ArrayLabel, Chunk, Observer, Program
from gpulab.simt.errors import Index, indexed_names, source_text
from gpulab.simt.program import is_volatile
from gpulab.simt.types import DTYPES

from .clocks import Clocks
from .flow import Flow
from .granules import WIDEST, Pages, finest, granule_of
from .race import ATOMIC, BLOCK_ATOMIC, READ, WRITE, Race, Touch
from .shadow import (
    NOBODY,
    OTHER_READER,
    READER,
    ROLES,
    SECOND_READER,
    WRITER,
    Lanes,
    Shadow,
    Who,
    thread_of,
    tick_of,
    written_bits,
)

Array = np.ndarray

ROOM = 1 << 20  # bytes of an array for which there is room at once; it costs nothing before it is used
PUT_OFF = 64  # reads of every thread of a chunk that are put off at most
REMEMBERED = 16  # groups of lanes whose threads are kept numbered


STRONG = {"volatile", "relaxed", "acquire", "release", "mmio"}  # loads and stores that others may meet
ACQUIRES, RELEASES = {"acquire", "acq_rel"}, {"release", "acq_rel"}

Counts = dict[int, int]  # how many of its releases are known, by block


@dataclass(frozen=True)
class _Release:
    """A thread told others what it had written before its fence at time `fence`, its own block what it had
    written before `fence_here`, and what its block and its warp had before the barriers at those times."""

    thread: int
    barrier: int
    warp_barrier: int
    fence: int
    fence_here: int


class Races(Observer):
    """Finds races; read `findings` after the launch, each pair of source lines once.

    `spaces` are the memories looked at; `arrays` names global memory; `find` gives the allocation of memory
    that is no argument, such as the variables of a module. Where the compiler has numbers `replicated` in
    several lanes, all of them may store theirs in one place of shared memory.
    """

    def __init__(
        self,
        spaces: tuple[str, ...] = ("shared",),
        arrays: tuple[ArrayLabel, ...] = (),
        find: Callable[[int], Allocation | None] = lambda address: None,
        replicated: bool = False,
    ) -> None:
        self.findings: list[Race] = []
        self._spaces, self._arrays, self._find, self._replicated = spaces, arrays, find, replicated
        self._seen: dict[tuple[object, ...], int] = {}
        self._sites: list[tuple[int, int]] = []  # of the findings: the two instructions
        self._decided: dict[int, Array] = {}  # how often each thread of one block took each branch, and not
        self._example = -1  # that block
        self._global: dict[int, Shadow] = {}  # by the address at which a stretch of memory begins
        self._shared: dict[int, Shadow] = {}  # by the first block of those that run together
        self._volatile: dict[int, Shadow] = {}  # as _shared, of volatile accesses alone
        self._releases: dict[int, list[_Release]] = defaultdict(list)  # by block
        self._released: dict[int, _Release] = {}  # by thread: its last one
        # by address; of shared memory and of atomics of a block by block and address
        self._published: dict[int | tuple[int, int], Counts] = defaultdict(dict)
        self._noticed: dict[int, Counts] = defaultdict(dict)  # by thread, which has not fenced since …
        self._acquired: dict[int, Counts] = defaultdict(dict)  # … and which has
        self._shared_out: dict[int, Counts] = defaultdict(dict)  # by block: what all its threads know
        self._clocks: dict[int, Clocks] = {}  # by block, once it uses an mbarrier
        self._met = False  # whether anybody has passed a barrier
        self._tick = 0  # counts accesses, barriers and fences
        self._at = array("i", [0])  # the instruction of each tick
        self._kinds: dict[tuple[int, str], int] = {}  # READ … by an access's instruction and kind
        self._datas: dict[int, bool] = {}  # by instruction
        self._groups: dict[tuple[int, int, int], Lanes] = {}  # by lanes, first block, number of blocks

    def start(self, program: object, grid: Index, block: Index) -> None:
        assert isinstance(program, Program)
        self._program, self._grid, self._block = program, grid, block
        blocks = grid[0] * grid[1] * grid[2]
        self._lanes = (block[0] * block[1] * block[2] + 31) // 32 * 32
        self._barrier = np.zeros(blocks, np.int64)  # when each block passed its last one …
        self._warp_barrier = np.zeros(blocks * self._lanes // 32, np.int64)  # … and each warp
        self._lane_barrier = np.zeros((0, 32), np.int64)  # by thread: when it waited for a lane of its warp
        self._fenced = np.full(blocks * self._lanes, -1, np.int64)
        self._fenced_here = self._fenced.copy()  # by a fence of any scope
        self._fences = any(
            i.parts[0] in ("fence", "membar") or (ACQUIRES | RELEASES) & set(i.parts)
            for i in program.instructions
        )
        self._finest = finest(program, "global")
        self._flow = Flow(program)

    def branch(self, index: int, lanes: Array | None, taken: Array, chunk: Chunk) -> None:
        if self._example < 0:
            self._example = int(chunk.blocks[0])
        row = np.flatnonzero(chunk.blocks == self._example)
        if not row.size:
            return
        shape = (chunk.blocks.size, chunk.lanes_per_block)
        on = np.broadcast_to(True if lanes is None else lanes, shape)[row[0]][: chunk.threads_per_block]
        way = np.broadcast_to(taken, shape)[row[0]][: chunk.threads_per_block]
        decided = self._decided.setdefault(index, np.zeros((2, chunk.threads_per_block), np.int64))
        decided[0] += on * way.astype(np.int64)
        decided[1] += on

    # ---- what orders ---------------------------------------------------------------------------------

    def _advance(self, index: int) -> None:
        """Something happens at an instruction: time goes on."""
        self._tick += 1
        self._at.append(index)

    def barrier(self, index: int, lanes: Array | None, chunk: Chunk) -> None:
        passed = None if lanes is None else np.atleast_1d(lanes.any(axis=1))
        for_all = passed is None or bool(passed.all())
        if not for_all:
            self._tell_apart(chunk)
        self._advance(index)
        self._met = True
        blocks = chunk.blocks if for_all else chunk.blocks[passed]
        self._barrier[blocks] = self._tick
        self._share_out(set(blocks.tolist()) if self._acquired else set())
        if for_all:
            shadow = self._shadow_of(chunk)
            shadow.quiet = self._tick
            shadow.take_put_off()

    def warp_sync(self, index: int, lanes: Array | None, masks: Array | None, chunk: Chunk) -> None:
        if self._program.instructions[index].parts[0] not in ("bar", "barrier"):
            return  # shuffles and votes exchange registers; they do not order memory
        self._catch_up(chunk)
        if self._acquired or masks is not None:
            self._meet_in_parts(index, lanes, masks, chunk)
            if masks is not None:
                return
        met = np.ones((1, 1), bool) if lanes is None else lanes
        warps = np.broadcast_to(met, (len(met), self._lanes)).reshape(len(met), -1, 32)
        met = np.logical_or.reduce(warps, axis=2)
        if (met != met[:1]).any():
            self._tell_apart(chunk)
        self._advance(index)
        self._met = True
        warp_barrier = self._warp_barrier.reshape(-1, self._lanes // 32)
        warp_barrier[chunk.blocks] = np.where(met, self._tick, warp_barrier[chunk.blocks])
        threads = self._group(lanes, chunk.blocks).thread if self._clocks else np.empty(0, np.int64)
        for block, clocks in self._clocks.items():
            mine = threads[threads // self._lanes == block] % self._lanes
            for warp in np.unique(mine // 32):
                clocks.meet(mine[mine // 32 == warp], self._tick)

    def _meet_in_parts(self, index: int, lanes: Array | None, masks: Array | None, chunk: Chunk) -> None:
        """Lanes wait for some lanes of their warp (None: for all): they know what those knew and did."""
        threads = self._group(lanes, chunk.blocks).thread
        if masks is None:
            for warp in {who >> 5 for who in self._acquired}:
                self._tell_each_other(threads[threads >> 5 == warp])
            return
        self._tell_apart(chunk)
        self._advance(index)
        self._met = True
        if not len(self._lane_barrier):
            self._lane_barrier = np.zeros((len(self._fenced), 32), np.int64)
        mine = np.broadcast_to(masks, (chunk.blocks.size, self._lanes))
        mine = mine[np.searchsorted(chunk.blocks, threads // self._lanes), threads % self._lanes]
        for mask in np.unique(mine):
            named = (int(mask) >> np.arange(32) & 1).astype(bool)
            group = threads[(mine == mask) & named[threads & 31]]
            if not len(group):
                continue
            warps, start = np.unique(group >> 5, return_index=True)
            known = np.maximum.reduceat(self._lane_barrier[group], start, axis=0)
            own = np.zeros((len(warps), 32), bool)
            own[np.searchsorted(warps, group >> 5), group & 31] = True
            known[own] = self._tick
            self._lane_barrier[group] = known[np.searchsorted(warps, group >> 5)]
            for block, clocks in self._clocks.items():
                for warp in warps[warps * 32 // self._lanes == block]:
                    clocks.meet(group[group >> 5 == warp] % self._lanes, self._tick)
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

    def arrive(self, index: int, address: Array, phase: Array, lanes: Array | None, chunk: Chunk) -> None:
        self._tell_apart(chunk)
        for block, where, parity, threads in self._apart(address, phase, lanes, chunk):
            clocks = self._clocks.setdefault(block, Clocks(self._lanes))
            clocks.arrive(where, parity, threads, self._tick)

    def passed(self, index: int, address: Array, phase: Array, lanes: Array, chunk: Chunk) -> None:
        self._catch_up(chunk)
        for block, where, parity, threads in self._apart(address, phase, lanes, chunk):
            if block in self._clocks:
                self._clocks[block].see(where, parity, threads)
            self._share_out({block} if self._acquired else set())

    def _apart(
        self, address: Array, phase: Array, lanes: Array | None, chunk: Chunk
    ) -> Iterator[tuple[int, int, int, Array]]:
        """(block, address, parity, threads of the block) for each mbarrier and phase of a group."""
        shape = (chunk.blocks.size, chunk.lanes_per_block)
        row, lane = np.nonzero(np.broadcast_to(True if lanes is None else lanes, shape))
        keys = np.stack([row, *(np.broadcast_to(x, shape)[row, lane] for x in (address, phase))])
        for key in np.unique(keys, axis=1).T:
            threads = lane[(keys == key[:, None]).all(axis=0)]
            yield int(chunk.blocks[key[0]]), int(key[1]), int(key[2]), threads

    def fence(self, index: int, lanes: Array | None, chunk: Chunk) -> None:
        self._advance(index)
        threads = self._group(lanes, chunk.blocks).thread
        for_all = "cta" not in self._program.instructions[index].parts
        self._fenced_here[threads] = self._tick
        if for_all:
            self._fenced[threads] = self._tick
        for who in self._noticed.keys() & set(threads.tolist()) if self._noticed else ():
            noticed, block = self._noticed[who], who // self._lanes
            _merge(self._acquired[who], noticed if for_all else {block: noticed.get(block, 0)})

    def _group(self, lanes: Array | None, blocks: Array) -> Lanes:
        """The lanes of a group in some blocks. Most groups come many times."""
        key = id(lanes), int(blocks[0]), len(blocks)
        known = self._groups.get(key)
        if known is None:
            if len(self._groups) == REMEMBERED:
                self._groups.clear()
            known = self._groups[key] = Lanes(lanes, blocks, self._lanes)
        return known

    def _communicate(self, access: Access, kind: int, thread: Array, address: Array) -> None:
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
                self._fenced_here[who] = self._tick
                self._fenced[who] = self._tick if kind == ATOMIC else self._fenced[who]
            fence, here = int(self._fenced[who]), int(self._fenced_here[who])
            barriers = int(self._barrier[block]), int(self._warp_barrier[who >> 5])
            release = _Release(who, *barriers, fence, here)
            if here >= 0 and self._released.get(who) != release:
                self._released[who] = release
                self._releases[block].append(release)
            for known in (self._shared_out.get(block, {}), self._acquired.get(who, {})):
                _merge(published, known)
            _merge(published, {block: len(self._releases[block])})

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
        clocks = self._clocks.get(first // self._lanes)
        return clocks is not None and bool(clocks.before[second % self._lanes, first % self._lanes] >= tick)

    # ---- accesses --------------------------------------------------------------------------------------

    def access(self, access: Access) -> None:
        if access.space not in self._spaces:
            return
        self._advance(access.index)
        kind = self._kind(access)
        if access.space == "shared" and self._is_data(access):
            self._look_within_warps(access)
        if access.space == "shared" and self._is_done(access, kind):
            return
        lanes = self._group(access.lanes, access.chunk.blocks)
        address = lanes.of(access.address)
        if kind >= ATOMIC:
            self._communicate(access, kind, lanes.thread, address)
        who = Who(lanes.thread, lanes.block, self._tick)
        for shadow, start, chosen in self._stretches(access, address, lanes.row):
            part = who if chosen is None else who.only(chosen)
            for i in range(max(access.size // shadow.granule, 1)):
                value = None
                if kind == WRITE:
                    value = lanes.of(written_bits(access.values, shadow.granule, i))
                    value = value if chosen is None else value[chosen]
                self._touch(access, shadow, part, start + i, kind, value)

    def _kind(self, access: Access) -> int:
        key = access.index, access.kind  # a copy loads and stores
        kind = self._kinds.get(key)
        if kind is None:
            kind = {"load": READ, "store": WRITE}.get(access.kind, ATOMIC)
            parts = access.instruction.parts
            strong = parts[0] in ("ld", "st") and STRONG & set(parts)
            if kind == ATOMIC or strong or is_volatile(access.instruction):
                kind = BLOCK_ATOMIC if "cta" in parts else ATOMIC
            self._kinds[key] = kind
        return kind

    # ---- shared memory: one block for all that do the same, and reads as late as may be --------------------

    def _is_done(self, access: Access, kind: int) -> bool:
        """Look at an access of shared memory in one block for all that run together, or put it off. False
        where they do not all do the same or the blocks' values may decide: then each is for itself."""
        shadow = self._shadow_of(access.chunk)
        if kind == READ and not shadow.waits(WRITER):
            self._put_off(shadow, access)
            return True
        if kind != READ and shadow.has_put_off(access):
            self._catch_up(access.chunk)
        one = self._as_one(shadow, access, self._tick)
        if one is None or not self._is_clean(shadow, access.size, kind, *one):
            self._tell_apart(access.chunk)
            return False
        if kind == READ:
            self._put_off(shadow, access)
            return True
        place, who = one
        for i in range(max(access.size // shadow.granule, 1)):
            bits = written_bits(access.values, shadow.granule, i)
            rows = np.broadcast_to(bits, (bits.shape[0], self._lanes))[:, who.thread % self._lanes]
            shadow.value.reshape(shadow.rows, -1)[:, place + i] = rows
            shadow.kind[place + i] = kind
            shadow.note(WRITER, place + i, who)
        return True

    def _is_data(self, access: Access) -> bool:
        """Whether it is a volatile load or store of what is no flag: the lanes of a warp race for it as they
        would without that word. (Between warps it may be a signal.)"""
        known = self._datas.get(access.index)
        if known is None:
            parts = access.instruction.parts
            known = parts[0] in ("ld", "st") and "volatile" in parts
            known = known and not (parts[0] == "ld" and self._flow.is_polled(access.index))
            self._datas[access.index] = known
        return known

    def _look_within_warps(self, access: Access) -> None:
        first, rows = int(access.chunk.blocks[0]), access.chunk.blocks.size
        if first not in self._volatile:
            self._volatile[first] = Shadow(WIDEST, 1, rows, within_warps=True)
        shadow = self._volatile[first]
        lanes = self._group(access.lanes, access.chunk.blocks)
        address = lanes.of(access.address)
        shadow.fit(int(address.max(initial=0)) + access.size, access.size)
        place = lanes.row * shadow.width + address // shadow.granule
        who, kind = Who(lanes.thread, lanes.block, self._tick), READ if access.kind == "load" else WRITE
        for i in range(max(access.size // shadow.granule, 1)):
            value = lanes.of(written_bits(access.values, shadow.granule, i)) if kind == WRITE else None
            self._touch(access, shadow, who, place + i, kind, value)

    def _as_one(self, shadow: Shadow, access: Access, tick: int) -> tuple[Array, Who] | None:
        """Places and lanes of the first block where all that run together do the same."""
        address, lanes = access.address, access.lanes
        if not shadow.alike or address.shape[0] > 1 or (lanes is not None and lanes.shape[0] > 1):
            return None
        group = self._group(lanes, access.chunk.blocks[:1])
        offset = group.of(address)
        shadow.fit(int(offset.max(initial=0)) + access.size, access.size)
        return offset // shadow.granule, Who(group.thread, group.block, tick)

    def _is_clean(self, shadow: Shadow, size: int, kind: int, place: Array, who: Who) -> bool:
        """Whether a plain access of one block races with nobody, whatever the blocks' values are."""
        roles = (WRITER,) if kind == READ else range(ROLES)
        for role in filter(shadow.waits, roles):
            for i in range(max(size // shadow.granule, 1)):
                if self._unordered(shadow, role, who, place + i, kind).any():
                    return False
        return kind == READ or (kind == WRITE and _are_distinct(place))

    def _put_off(self, shadow: Shadow, access: Access) -> None:
        if shadow.put_off(access, self._tick) > PUT_OFF * access.chunk.blocks.size * self._lanes:
            self._catch_up(access.chunk)

    def _catch_up(self, chunk: Chunk) -> None:
        """Note the reads that were put off."""
        shadow = self._shadow_of(chunk)
        for read in shadow.take_put_off():
            one = self._as_one(shadow, read.access, read.tick)
            if one is None:
                if shadow.alike:
                    shadow.spread(chunk.blocks, self._lanes)
                lanes = self._group(read.access.lanes, chunk.blocks)
                ((_, place, _),) = self._stretches(read.access, lanes.of(read.access.address), lanes.row)
                one = place, Who(lanes.thread, lanes.block, read.tick)
            place, who = one
            for i in range(max(read.access.size // shadow.granule, 1)):
                self._note_readers(shadow, who, place + i)

    def _shadow_of(self, chunk: Chunk) -> Shadow:
        """What is known of the shared memory of the blocks that run together."""
        first = int(chunk.blocks[0])
        if first not in self._shared:
            width = max(self._program.shared_bytes // WIDEST, 1)
            self._shared[first] = Shadow(WIDEST, width, chunk.blocks.size, alike=True)
        return self._shared[first]

    def _tell_apart(self, chunk: Chunk) -> None:
        """From now on each block is looked at for itself."""
        self._catch_up(chunk)
        shadow = self._shadow_of(chunk)
        if shadow.alike:
            shadow.spread(chunk.blocks, self._lanes)

    # ---- any memory ---------------------------------------------------------------------------------------

    def _stretches(
        self, access: Access, address: Array, row: Array
    ) -> list[tuple[Shadow, Array, Array | None]]:
        """(shadow, place of each lane's first granule, lanes that it concerns or None for all)."""
        if access.space == "shared":
            shadow = self._shadow_of(access.chunk)
            shadow.fit(int(address.max(initial=0)) + access.size, access.size)
            return [(shadow, row * shadow.width + address // shadow.granule, None)]
        found: list[tuple[Shadow, Array, Array | None]] = []
        low, high = int(address.min()), int(address.max())
        for label in self._arrays:
            if label.address <= low and high < label.address + label.extent:
                shadow = self._stretch(label.address, label.extent, access.size)
                return [(shadow, shadow.places(address, access.size), None)]
            if low < label.address + label.extent and label.address <= high:
                break  # only some lanes are in it
        rest = np.ones(len(address), bool)
        for label in self._arrays:
            if not rest.any():
                break
            self._take(label.address, label.extent, access.size, address, rest, found)
        while rest.any():
            place = int(address[rest][0])
            variable = self._find(place)
            if variable is None:
                break  # of no array that is known
            self._take(variable.address, variable.nbytes, access.size, address, rest, found)
        return found

    def _take(self, start: int, extent: int, size: int, address: Array, rest: Array, found: list) -> None:
        """Move the lanes of `rest` in one stretch of global memory over to `found`."""
        here = rest & (address >= start) & (address < start + extent)
        if here.any():
            shadow = self._stretch(start, extent, size)
            whole = bool(here.all())
            place = shadow.places(address if whole else address[here], size)
            found.append((shadow, place, None if whole else here))
            rest &= ~here

    def _stretch(self, start: int, extent: int, size: int) -> Shadow:
        """What is known of a stretch of global memory."""
        if start not in self._global:
            granule = min(granule_of(size), max(self._finest, 4))
            pages = Pages(start, extent)
            self._global[start] = Shadow(granule, min(pages.most, ROOM) // granule, pages=pages)
        return self._global[start]

    def _touch(
        self, access: Access, s: Shadow, who: Who, place: Array, kind: int, value: Array | None
    ) -> None:
        for role in filter(s.waits, (WRITER,) if kind == READ else range(ROLES)):
            unordered = self._unordered(s, role, who, place, kind)
            if role == WRITER and kind == WRITE and unordered.any():
                again = self._index_of(s.touch[WRITER][place]) == access.index
                unordered &= ~(again & (s.value[place] == value))
            if unordered.any():
                self._report(access, s, role, who, place, kind, unordered)
        if kind == READ:
            self._note_readers(s, who, place)
            return
        if value is not None:
            if not s.within_warps:
                self._check_within(access, who, place, value, WRITE)
            s.value[place] = value
        if kind == BLOCK_ATOMIC:
            self._check_within(access, who, place, who.block, kind)
        s.kind[place] = kind
        s.note(WRITER, place, who)

    def _index_of(self, touch: Array) -> Array:
        """The instructions of some touches."""
        return np.frombuffer(self._at, np.int32)[tick_of(touch)]

    def _unordered(self, s: Shadow, role: int, who: Who, place: Array, kind: int) -> Array:
        """Lanes whose access nothing orders after the touch that is kept in `role`."""
        touch = s.touch[role][place]
        other = thread_of(touch)
        unordered = (touch != NOBODY) & (other != who.thread)
        if not unordered.any():
            return unordered
        tick, same_block = tick_of(touch), other // self._lanes == who.block
        unordered &= ~(same_block & (tick < self._barrier[who.block]))
        same_warp = other >> 5 == who.thread >> 5
        if s.within_warps:
            unordered &= same_warp
        unordered &= ~(same_warp & (tick < self._warp_barrier[who.thread >> 5]))
        if len(self._lane_barrier):
            unordered &= ~(same_warp & (tick < self._lane_barrier[who.thread, other & 31]))
        if role == WRITER and kind >= ATOMIC:
            before = s.kind[place]
            unordered &= ~((before >= ATOMIC) & (same_block | ((kind == ATOMIC) & (before == ATOMIC))))
        if self._clocks:
            for at in np.flatnonzero(unordered & same_block):
                unordered[at] = not self._is_seen(int(other[at]), int(tick[at]), int(who.thread[at]))
        if self._releases:
            for at in np.flatnonzero(unordered):
                unordered[at] = not self._is_ordered(int(other[at]), int(tick[at]), int(who.thread[at]), kind)
        return unordered

    def _note_readers(self, s: Shadow, who: Who, place: Array) -> None:
        """Keep the first reader since the last barrier, another one of its warp and one of another warp."""
        warp = who.thread >> 5
        if not s.waits(READER):
            s.note(READER, place, who)
        else:
            old = s.touch[READER][place]
            fresh = old == NOBODY
            if self._met:
                other, tick = thread_of(old), tick_of(old)
                fresh |= (other // self._lanes == who.block) & (tick < self._barrier[who.block])
                fresh |= (other >> 5 == warp) & (tick < self._warp_barrier[warp])
                if len(self._lane_barrier):
                    known = self._lane_barrier[who.thread, other & 31]
                    fresh |= (other >> 5 == warp) & (tick < known)
            self._note_some(s, READER, who, place, fresh)
        first = thread_of(s.touch[READER][place])
        others = first != who.thread
        if others.any():
            apart = first >> 5 != warp
            self._note_some(s, SECOND_READER, who, place, others & ~apart)
            self._note_some(s, OTHER_READER, who, place, apart)

    @staticmethod
    def _note_some(s: Shadow, role: int, who: Who, place: Array, chosen: Array) -> None:
        if chosen.all():
            s.note(role, place, who)
        elif chosen.any():
            s.note(role, place[chosen], who.only(chosen))

    def _check_within(self, access: Access, who: Who, place: Array, value: Array, kind: int) -> None:
        """Lanes of one access that touch one word with different values."""
        if self._replicated and access.space == "shared":
            return
        if (place[1:] > place[:-1]).all():
            return
        order = np.argsort(place, kind="stable")
        ordered = place[order]
        clash = (ordered[1:] == ordered[:-1]) & (value[order][1:] != value[order][:-1])
        if clash.any():
            at = int(clash.argmax())
            first, second = who.thread[order[at]], who.thread[order[at + 1]]
            written = int(value[order[at]]) if kind == WRITE else None
            sides = (access.index, int(first), kind, written), (access.index, int(second), kind)
            self._add(access, sides)

    # ---- findings --------------------------------------------------------------------------------------

    def _report(
        self, access: Access, s: Shadow, role: int, who: Who, place: Array, kind: int, unordered: Array
    ) -> None:
        touch = s.touch[role][place]
        across = unordered & (thread_of(touch) >> 5 != who.thread >> 5)  # the worse kind, if there is any
        at = int(across.argmax() if across.any() else unordered.argmax())
        before = int(s.kind[place[at]]) if role == WRITER else READ
        first, index = int(thread_of(touch[at])), int(self._index_of(touch[at]))
        known = before == WRITE and len(access.values) == 1 and access.size == s.granule
        written = int(s.value[place[at]]) if known else None
        self._add(access, ((index, first, before, written), (access.index, int(who.thread[at]), kind)))

    def _add(
        self, access: Access, both: tuple[tuple[int, int, int, int | None], tuple[int, int, int]]
    ) -> None:
        """Two touches race: (instruction, thread, kind) of each, and what the first one wrote, if known."""
        (index, first, first_kind, written), (_, second, kind) = both
        instructions = self._program.instructions
        address = self._address_of(access, second)
        element, size, label = self._element(access, address, (index, access.index))
        dtype = self._type_of(access, size, address)
        sides = [
            (index, first, first_kind, _spoken(written, dtype)),
            (access.index, second, kind, _spoken(self._moved(access, second, kind), dtype)),
        ]
        if self._is_backwards(index, access.index):
            sides.reverse()
        places = tuple(instructions[i].location or i for i, *_ in sides)
        known = self._seen.get(places)  # an unrolled loop has many instructions of one line
        if known is not None and (first // 32 == second // 32 or not self.findings[known].within_a_warp):
            return
        earlier, later = (self._side(*side) for side in sides)
        fields = access.space == "shared" and any(self._has_fields(label, index) for index, *_ in sides)
        race = Race(
            self._program.display_name,
            access.space,
            earlier,
            later,
            element,
            size,
            label,
            has_fields=fields,
        )
        site = sides[0][0], sides[1][0]
        if known is not None:
            self.findings[known], self._sites[known] = race, site
        else:
            self._seen[places] = len(self.findings)
            self.findings.append(race)
            self._sites.append(site)

    def end(self) -> None:
        """What all threads have decided is known now, and so is where a barrier may stand."""
        for number, (race, (first, second)) in enumerate(zip(self.findings, self._sites, strict=True)):
            place = self._flow.place_of_barrier(first, second, self._is_divergent)
            written_first = race.first.kind != READ and race.second.kind == READ
            repeated = written_first or self._flow.is_repeated(first, second)
            signalled = ATOMIC in self._kinds.values()
            in_parts = bool(len(self._lane_barrier) or self._clocks)
            self.findings[number] = replace(
                race, place=place, repeated=repeated, signalled=signalled, in_parts=in_parts
            )

    def _is_divergent(self, branch: int) -> bool:
        """Whether threads of one block have decided differently at a branch."""
        decided = self._decided.get(branch)
        return decided is not None and bool((decided != decided[:, :1]).any())

    def _is_backwards(self, first: int, second: int) -> bool:
        """Whether only the schedule let instruction `first` run before `second`."""
        if self._flow.leads(first, second):
            return False
        places = [self._program.instructions[i].location for i in (first, second)]
        lines = [place.line for place in places if place is not None]
        return self._flow.leads(second, first) or lines[::-1] < lines

    def _address_of(self, access: Access, thread: int) -> int:
        row = int(np.flatnonzero(access.chunk.blocks == thread // self._lanes)[0])
        shape = (access.chunk.blocks.size, access.chunk.lanes_per_block)
        return int(np.broadcast_to(access.address, shape)[row, thread % self._lanes])

    def _element(
        self, access: Access, address: int, sites: tuple[int, int]
    ) -> tuple[tuple[int, ...], int, str]:
        """(index, bytes of an element, the array's name) of what the instructions `sites` touch."""
        size = max(access.size // max(len(access.values), 1), 1)
        if access.space == "global":
            for label in self._arrays:
                if label.address <= address < label.address + label.extent:
                    return label.index_of(address), label.itemsize, label.name
            variable = self._find(address)
            assert variable is not None
            return ((address - variable.address) // size,), size, variable.name
        start = max((o for o, _ in self._program.shared_variables.values() if o <= address), default=0)
        return ((address - start) // size,), size, self._shared_name(sites)

    def _shared_name(self, sites: tuple[int, int]) -> str:
        """The only name that both source lines use as an array and no argument has."""
        one, other = (indexed_names(self._program.instructions[i].location) for i in sites)
        common = (one & other) - {label.name for label in self._arrays}
        return common.pop() if len(common) == 1 else ""

    def _has_fields(self, label: str, index: int) -> bool:
        """Whether a source line uses elements of an array as structs."""
        text = source_text(self._program.instructions[index].location)
        return (
            bool(label) and re.search(rf"\b{re.escape(label)}\s*\[[^][]*\]\s*(\.|->)\s*\w", text) is not None
        )

    def _type_of(self, access: Access, size: int, address: int) -> np.dtype | None:
        """The type of an element, if it is known: where compilers merely move floats they call them words."""
        arrays = {a: np.dtype(a.dtype) for a in self._arrays if not a.dtype.startswith(("void", "record"))}
        if access.space == "global":
            dtype = next((t for a, t in arrays.items() if a.address <= address < a.address + a.extent), None)
        else:
            dtype = DTYPES.get(access.instruction.parts[-1])
            integers = arrays and all(t.kind in "iu" for t in arrays.values())
            if dtype is None or (dtype.kind != "f" and not integers):
                return None
        return dtype if dtype is not None and dtype.itemsize == size and dtype.kind in "iufb" else None

    def _moved(self, access: Access, thread: int, kind: int) -> int | None:
        """The bits that a thread reads or writes, where it is one element."""
        if kind not in (READ, WRITE) or len(access.values) != 1 or access.values[0].itemsize > WIDEST:
            return None
        row = int(np.flatnonzero(access.chunk.blocks == thread // self._lanes)[0])
        shape = (access.chunk.blocks.size, access.chunk.lanes_per_block)
        value = np.broadcast_to(access.values[0], shape)[row : row + 1, thread % self._lanes]
        return int(written_bits([value], value.itemsize, 0)[0])

    def _side(self, index: int, thread: int, kind: int, value: str) -> Touch:
        x, y, _ = self._block
        gx, gy, _ = self._grid
        block, lane = divmod(thread, self._lanes)
        instruction = self._program.instructions[index]
        verb = {"ld": "reads", "st": "writes"}.get(instruction.parts[0], "")
        if verb and STRONG & set(instruction.parts):
            verb = f"{verb}, as a volatile," if "volatile" in instruction.parts else f"atomically {verb}"
        return Touch(
            instruction.location,
            (block % gx, block // gx % gy, block // (gx * gy)),
            (lane % x, lane // x % y, lane // (x * y)),
            lane,
            kind,
            value,
            verb,
        )


def _merge(counts: Counts, more: Counts) -> None:
    for block, count in more.items():
        counts[block] = max(counts.get(block, 0), count)


def _are_distinct(place: Array) -> bool:
    return bool((place[1:] > place[:-1]).all()) or len(np.unique(place)) == len(place)


def _spoken(bits: int | None, dtype: np.dtype | None) -> str:
    """A value as a learner writes it; empty where it is not known."""
    if bits is None or dtype is None:
        return ""
    return str(np.array(bits, np.int64).reshape(1).view(dtype)[0])
