"""Data races: two threads, one word, at least one write, and nothing that puts one before the other.

What orders two accesses: the program of one thread, a barrier of the block, ``syncwarp`` between lanes of one
warp, an mbarrier between the threads that arrive and those that wait, and between blocks an atomic (or
volatile) access after a fence that another block has seen, with a fence after it, too. The detector does not
need the race to go wrong: it remembers which thread touched each word last, and what has happened since.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from gpulab.simulator.simt import Access, Allocation, ArrayLabel, Chunk, Observer, Program, Transfer
from gpulab.simulator.simt.errors import Index
from gpulab.simulator.simt.events import State
from gpulab.simulator.simt.opcodes import is_volatile

from .bulk_ends import End, arrivals, at_mbarriers, ends
from .counters import bulk_kind
from .flow import Flow
from .granules import WIDEST, Pages, finest, granule_of
from .order import Order
from .race import ATOMIC, BLOCK_ATOMIC, BULK, BULK_ATOMIC, READ, STRONG, WRITE, Race
from .shadow import (
    NOBODY,
    OTHER_READER,
    READER,
    ROLES,
    SECOND_READER,
    WRITER,
    Groups,
    Shadow,
    Who,
    thread_of,
    written_bits,
)
from .sightings import Sightings

Array = np.ndarray

ROOM = 1 << 20  # bytes of an array for which there is room at once; it costs nothing before it is used
PUT_OFF = 64  # reads of every thread of a chunk that are put off at most


class Races(Observer):
    """Finds races; read `findings` after the launch, each pair of source lines once.

    `spaces` are the memories looked at; `arrays` names global memory; `find` gives the allocation of memory
    that is no argument, such as the variables of a module. Where the compiler has numbers `replicated` in
    several lanes, all of them may store theirs in one place of shared memory.
    """

    _order: Order
    _sightings: Sightings

    def __init__(
        self,
        spaces: tuple[str, ...] = ("shared",),
        arrays: tuple[ArrayLabel, ...] = (),
        find: Callable[[int], Allocation | None] = lambda address: None,
        replicated: bool = False,
    ) -> None:
        self._spaces, self._arrays, self._find, self._replicated = spaces, arrays, find, replicated
        self._global: dict[int, Shadow] = {}  # by the address at which a stretch of memory begins
        self._shared: dict[int, Shadow] = {}  # by the first block of those that run together
        self._volatile: dict[int, Shadow] = {}  # as _shared, of volatile accesses alone
        self._kinds: dict[tuple[int, str], int] = {}  # READ … by an access's instruction and kind
        self._datas: dict[int, bool] = {}  # by instruction

    def start(self, program: Program, grid: Index, block: Index) -> None:
        self._program = program
        self._lanes = (math.prod(block) + 31) // 32 * 32
        self._groups = Groups(self._lanes)
        self._copied = any(bulk_kind(i) in ("load", "exchange") for i in program.instructions)
        self._order = Order(program, math.prod(grid), self._lanes, self._copied)
        self._flow = Flow(program)
        self._sightings = Sightings(program, self._flow, grid, block, self._lanes, self._arrays, self._find)
        self._finest = finest(program, "global")

    @property
    def findings(self) -> list[Race]:
        """Empty before the launch."""
        return self._sightings.findings if hasattr(self, "_sightings") else []

    def branch(self, index: int, lanes: Array | None, taken: Array, chunk: Chunk) -> None:
        self._sightings.branch(index, lanes, taken, chunk)

    def end(self) -> None:
        self._sightings.end(
            signalled=ATOMIC in self._kinds.values(),
            in_parts=self._order.in_parts,
            by_mbarriers=any(i.parts[0] == "mbarrier" for i in self._program.instructions),
        )

    # ---- what orders ---------------------------------------------------------------------------------

    def barrier(self, index: int, lanes: Array | None, chunk: Chunk) -> None:
        passed = None if lanes is None else np.atleast_1d(lanes.any(axis=1))
        if chunk.cluster_size > 1 or self._copied or (passed is not None and not passed.all()):
            self._tell_apart(chunk)  # other blocks and bulk copies do not care for this barrier
            self._order.barrier(index, chunk.blocks if passed is None else chunk.blocks[passed])
            return
        self._order.barrier(index, chunk.blocks)
        shadow = self._shadow_of(chunk)
        shadow.quiet = self._order.now
        shadow.take_put_off()

    def warp_sync(self, index: int, lanes: Array | None, masks: Array | None, chunk: Chunk) -> None:
        if self._program.instructions[index].parts[0] not in ("bar", "barrier", "wgmma"):
            return  # shuffles and votes exchange registers; they do not order memory
        self._catch_up(chunk)
        group = self._groups.of(lanes, chunk.blocks)
        if masks is not None:
            self._tell_apart(chunk)
            self._order.lane_sync(index, group.thread, group.of(masks))
            return
        if lanes is not None:
            by_warp = np.broadcast_to(lanes, (len(lanes), self._lanes)).reshape(len(lanes), -1, 32)
            warps = np.logical_or.reduce(by_warp, axis=2)
            if (warps != warps[:1]).any():
                self._tell_apart(chunk)
        self._order.warp_sync(index, group.thread)

    def begin(self, state: State) -> None:
        self._order.begin(state.chunk.blocks, state.chunk.cluster_size)

    def arrive(
        self,
        index: int,
        address: Array,
        phase: Array,
        lanes: Array | None,
        chunk: Chunk,
        rows: Array | None = None,
    ) -> None:
        self._tell_apart(chunk)
        for block, where, parity, threads in at_mbarriers(address, phase, lanes, chunk, rows):
            self._order.arrive(block, where, parity, threads)

    def committed(self, row: int, lane: int, address: int, phase: Array, rows: Array, chunk: Chunk) -> None:
        self._tell_apart(chunk)
        thread = np.array([chunk.blocks[row] * self._lanes + lane])
        for owner, parity in zip(chunk.blocks[rows].tolist(), phase.tolist(), strict=True):
            self._order.arrive(owner, address, parity, thread)

    def passed(
        self,
        index: int,
        address: Array,
        phase: Array,
        lanes: Array,
        chunk: Chunk,
        rows: Array | None = None,
    ) -> None:
        self._catch_up(chunk)
        for block, where, parity, threads in at_mbarriers(address, phase, lanes, chunk, rows):
            self._order.passed(block, where, parity, threads)

    def fence(self, index: int, lanes: Array | None, chunk: Chunk) -> None:
        self._order.fence(index, self._groups.of(lanes, chunk.blocks).thread)

    # ---- bulk copies -----------------------------------------------------------------------------------

    def bulk(self, transfer: Transfer) -> None:
        """A bulk copy is looked at as what its sender does when it sends it; who waits for the mbarrier that
        counts its bytes comes after that."""
        self._order.advance(transfer.index)
        if "shared" in self._spaces:
            self._tell_apart(transfer.chunk)
        for end in ends(transfer):
            if end.space in self._spaces and end.address.size:
                self._bulk_end(transfer, end)
        for arrival in arrivals(transfer):
            self._order.copies_arrive(*arrival)

    def _bulk_end(self, transfer: Transfer, end: End) -> None:
        both = end.reads and end.writes
        kind = WRITE if end.writes else READ
        if both and end.space == "global":
            kind = ATOMIC
        block = transfer.chunk.blocks[end.row]
        who = Who(block * self._lanes + end.lane, block, self._order.now)
        access = end.access(transfer)
        for shadow, start, chosen in self._stretches(access, end.address, end.owner):
            part = who if chosen is None else who.only(chosen)
            where = end.address if chosen is None else end.address[chosen]
            for i in range(max(access.size // shadow.granule, 1)):
                self._touch(access, shadow, part, start + i, kind, None, where, both)
                if end.writes and end.space == "shared":
                    shadow.kind[start + i] = BULK_ATOMIC if both else BULK

    # ---- accesses --------------------------------------------------------------------------------------

    def access(self, access: Access) -> None:
        space = "shared" if access.space == "cluster" else access.space
        if space not in self._spaces:
            return
        self._order.advance(access.index)
        kind = self._kind(access)
        if access.space == "shared" and self._is_data(access):
            self._look_within_warps(access)
        if access.space == "shared" and self._is_done(access, kind):
            return
        if access.space == "cluster":
            self._tell_apart(access.chunk)
        lanes = self._groups.of(access.lanes, access.chunk.blocks)
        address = lanes.of(access.address)
        if kind >= ATOMIC:
            self._order.communicate(access, kind, lanes.thread, address)
        who = Who(lanes.thread, lanes.block, self._order.now)
        row = lanes.row if access.rows is None else lanes.of(access.rows)
        for shadow, start, chosen in self._stretches(access, address, row):
            part = who if chosen is None else who.only(chosen)
            for i in range(max(access.size // shadow.granule, 1)):
                value = None
                if kind == WRITE and access.values:
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
        one = self._as_one(shadow, access, self._order.now) if kind == READ or access.values else None
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
        lanes = self._groups.of(access.lanes, access.chunk.blocks)
        address = lanes.of(access.address)
        shadow.fit(int(address.max(initial=0)) + access.size, access.size)
        place = lanes.row * shadow.width + address // shadow.granule
        who, kind = Who(lanes.thread, lanes.block, self._order.now), READ if access.kind == "load" else WRITE
        for i in range(max(access.size // shadow.granule, 1)):
            value = lanes.of(written_bits(access.values, shadow.granule, i)) if kind == WRITE else None
            self._touch(access, shadow, who, place + i, kind, value)

    def _as_one(self, shadow: Shadow, access: Access, tick: int) -> tuple[Array, Who] | None:
        """Places and lanes of the first block where all that run together do the same."""
        address, lanes = access.address, access.lanes
        if not shadow.alike or address.shape[0] > 1 or (lanes is not None and lanes.shape[0] > 1):
            return None
        group = self._groups.of(lanes, access.chunk.blocks[:1])
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
        if shadow.put_off(access, self._order.now) > PUT_OFF * access.chunk.blocks.size * self._lanes:
            self._catch_up(access.chunk)

    def _catch_up(self, chunk: Chunk) -> None:
        """Note the reads that were put off."""
        shadow = self._shadow_of(chunk)
        for read in shadow.take_put_off():
            one = self._as_one(shadow, read.access, read.tick)
            if one is None:
                if shadow.alike:
                    shadow.spread(chunk.blocks, self._lanes)
                lanes = self._groups.of(read.access.lanes, chunk.blocks)
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
        if access.space != "global":
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

    def _take(
        self, start: int, extent: int, size: int, address: Array, rest: Array, found: list[Any]
    ) -> None:
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
        self,
        access: Access,
        s: Shadow,
        who: Who,
        place: Array,
        kind: int,
        value: Array | None,
        where: Array | None = None,
        combines: bool = False,
    ) -> None:
        """`where` are the addresses of a bulk copy's elements, whose sender is not at one of them. A bulk
        reduction `combines` what comes with what is there, in any order."""
        for role in filter(s.waits, (WRITER,) if kind == READ else range(ROLES)):
            unordered = self._unordered(s, role, who, place, kind)
            if combines and role == WRITER:
                unordered &= s.kind[place] != BULK_ATOMIC
            if role == WRITER and kind == WRITE and value is not None and unordered.any():
                again = self._order.index_of(s.touch[WRITER][place]) == access.index
                unordered &= ~(again & (s.value[place] == value))
            if unordered.any():
                self._report(access, s, role, who, place, kind, unordered, where)
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

    def _unordered(self, s: Shadow, role: int, who: Who, place: Array, kind: int) -> Array:
        """Lanes whose access nothing orders after the touch that is kept in `role`."""
        touch = s.touch[role][place]
        other = thread_of(touch)
        unordered: Array = (touch != NOBODY) & (other != who.thread)
        copied = (touch != NOBODY) & (s.kind[place] < READ) if self._copied and role == WRITER else None
        if copied is not None and copied.any():
            normal = self._unordered_threads(s, role, who, place, kind, touch, unordered & ~copied)
            return normal | copied & ~self._order.is_there(touch, who)
        return self._unordered_threads(s, role, who, place, kind, touch, unordered)

    def _unordered_threads(
        self, s: Shadow, role: int, who: Who, place: Array, kind: int, touch: Array, unordered: Array
    ) -> Array:
        """As `_unordered`, of touches that are not by bulk copies and might be."""
        other = thread_of(touch)
        if not unordered.any():
            return unordered
        unordered &= ~self._order.waited(touch, who)
        if s.within_warps:
            unordered &= other >> 5 == who.thread >> 5
        if role == WRITER and kind >= ATOMIC:
            before, same_block = s.kind[place], other // self._lanes == who.block
            unordered &= ~((before >= ATOMIC) & (same_block | ((kind == ATOMIC) & (before == ATOMIC))))
        return self._order.still_apart(unordered, touch, who, kind)

    def _note_readers(self, s: Shadow, who: Who, place: Array) -> None:
        """Keep the first reader since the last barrier, another one of its warp and one of another warp."""
        if not s.waits(READER):
            s.note(READER, place, who)
        else:
            old = s.touch[READER][place]
            fresh = old == NOBODY
            if self._order.met:
                fresh |= self._order.waited(old, who)
            self._note_some(s, READER, who, place, fresh)
        first = thread_of(s.touch[READER][place])
        others = first != who.thread
        if others.any():
            apart = first >> 5 != who.thread >> 5
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
            self._sightings.add(access, sides)

    def _report(
        self,
        access: Access,
        s: Shadow,
        role: int,
        who: Who,
        place: Array,
        kind: int,
        unordered: Array,
        where: Array | None = None,
    ) -> None:
        touch = s.touch[role][place]
        across = unordered & (thread_of(touch) >> 5 != who.thread >> 5)  # the worse kind, if there is any
        at = int(across.argmax() if across.any() else unordered.argmax())
        before = int(s.kind[place[at]]) if role == WRITER else READ
        first, index = int(thread_of(touch[at])), int(self._order.index_of(touch[at]))
        if where is not None:
            access = replace(access, address=np.full((1, 1), where[at]))
        known = before == WRITE and len(access.values) == 1 and access.size == s.granule
        written = int(s.value[place[at]]) if known else None
        self._sightings.add(
            access, ((index, first, before, written), (access.index, int(who.thread[at]), kind))
        )


def _are_distinct(place: Array) -> bool:
    return bool((place[1:] > place[:-1]).all()) or len(np.unique(place)) == len(place)
