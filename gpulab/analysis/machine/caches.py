"""The caches between a kernel and DRAM, simulated by sector: an L1 for each SM, one L2.

A line is 128 B, of which each 32-byte sector comes and goes alone. Loads look in the L1 of their SM, then in
the L2, then in DRAM. Stores go through to the L2 (and update the L1's copy); atomics work there. What the L2
drops after it has been written goes to DRAM. Block b runs on SM b modulo the number of SMs, and blocks that
are simulated at once take turns, instruction by instruction, warp by warp.

What no maker publishes is assumed: 16 ways, least recently used goes first, the set is a hash of the line's
number. Local memory, constants and textures are left out.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import numba
import numpy as np

from gpulab.analysis.profile.modelled import SECTOR, Traffic
from gpulab.simulator.hardware.gpu import GPU
from gpulab.simulator.simt import Access, Observer
from gpulab.simulator.simt.opcodes import is_volatile

Array = np.ndarray

LINE, WAYS = 128, 16
SECTORS = LINE // SECTOR
TAG = 46  # bits of a sector's number: addresses have 51 at most
READ, WRITE, ATOMIC = 0, 1, 2
# What is counted, in sectors.
L1_READS, L1_HITS, L2_READS, L2_READ_HITS, L2_WRITES, L2_ATOMICS, DRAM_READS, DRAM_WRITES = range(8)
PENDING = 1 << 18  # addresses of atomics that wait to be added up


class Caches(Observer):
    """Simulates the caches of a GPU; read `traffic` after the launch. They are empty at its start, as under
    Nsight Compute, which flushes them. One that watches several launches keeps what it has; `steps` is what
    each of them added.

    `shared_bytes` is the part of each SM's memory that is shared memory; the rest is the L1. `added_up` are
    the lines of the PTX whose atomics a warp adds up before one of its lanes carries them out.
    """

    def __init__(self, gpu: GPU, shared_bytes: int = 0, added_up: Set[int] = frozenset()) -> None:
        self._added_up = added_up
        self.sms = int(gpu.sms)
        self._l1 = _Cache(int(gpu.l1_bytes) - shared_bytes, self.sms)
        self._l2 = _Cache(int(gpu.l2_bytes), 1)
        self._counts = np.zeros(8, np.int64)
        self._clock = np.zeros(1, np.int64)
        self._updates: list[tuple[Array, Array]] = []  # addresses that atomics update, and how often
        self._marks = [np.zeros(len(self._counts) + 2, np.int64)]  # counts so far, at the end of each launch

    def access(self, access: Access) -> None:
        if access.space != "global":
            return
        chunk = access.chunk
        shape = (chunk.blocks.size, chunk.lanes_per_block)
        row, lane = np.nonzero(np.broadcast_to(True if access.lanes is None else access.lanes, shape))
        if not row.size:
            return
        address = np.broadcast_to(access.address, shape)[row, lane].astype(np.int64)
        warp = row * chunk.warps_per_block + lane // 32
        parts = [address // SECTOR]
        for end in range(SECTOR, access.size + SECTOR, SECTOR):
            parts.append((address + min(end, access.size) - 1) // SECTOR)
        keys = np.unique(np.tile(warp << TAG, len(parts)) | np.concatenate(parts))
        sm = chunk.blocks[(keys >> TAG) // chunk.warps_per_block] % self.sms
        sectors = keys & ((1 << TAG) - 1)
        kind = {"load": READ, "store": WRITE}.get(access.kind, ATOMIC)
        past_l1 = is_volatile(access.instruction) or "cg" in access.instruction.parts
        if kind == ATOMIC:
            once = access.instruction.line in self._added_up
            self._update(address[np.unique(warp, return_index=True)[1]] if once else address)
        _walk(sm, sectors, kind, past_l1, *self._l1.state, *self._l2.state, self._counts, self._clock)

    def _update(self, address: Array) -> None:
        self._updates.append(np.unique(address, return_counts=True))
        if sum(addresses.size for addresses, _ in self._updates) > PENDING:
            self._add_up()

    def _add_up(self) -> Array:
        """How often each address was updated."""
        if not self._updates:
            return np.zeros(0, np.int64)
        addresses, place = np.unique(np.concatenate([a for a, _ in self._updates]), return_inverse=True)
        times = np.zeros(addresses.size, np.int64)
        np.add.at(times, place, np.concatenate([n for _, n in self._updates]))
        self._updates = [(addresses, times)]
        return times

    def end(self) -> None:
        hottest = int(self._add_up().max(initial=0))
        self._marks.append(np.array([*self._counts, self._l2.dirty.sum(), hottest]))

    @property
    def steps(self) -> Sequence[Array]:
        """What each launch added to the fields of `Traffic`."""
        return [after - before for before, after in zip(self._marks, self._marks[1:], strict=False)]

    @property
    def traffic(self) -> Traffic:
        """What went where, in all launches."""
        return Traffic(*map(int, self._marks[-1]))


class _Cache:
    """`copies` caches of `nbytes` bytes: tags, sectors that are valid and dirty, and the time of last use."""

    def __init__(self, nbytes: int, copies: int) -> None:
        sets = max(nbytes // (LINE * WAYS), 1)
        self.tags = np.full((copies, sets, WAYS), -1, np.int64)
        self.valid = np.zeros((copies, sets, WAYS, SECTORS), np.bool_)
        self.dirty = np.zeros((copies, sets, WAYS, SECTORS), np.bool_)
        self.used = np.zeros((copies, sets, WAYS), np.int64)

    @property
    def state(self) -> tuple[Array, Array, Array, Array]:
        return self.tags, self.valid, self.dirty, self.used


@numba.njit(cache=True)
def _set_of(line, sets):  # type: ignore[no-untyped-def]
    """A hash, so that no stride meets in one set."""
    mixed = np.uint64(line) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((mixed >> np.uint64(33)) % np.uint64(sets))


@numba.njit(cache=True)
def _find(line, tags):  # type: ignore[no-untyped-def]
    for way in range(tags.size):
        if tags[way] == line:
            return way
    return -1


@numba.njit(cache=True)
def _make_room(line, tags, valid, dirty, used):  # type: ignore[no-untyped-def]
    """The way that will hold `line`, and how many dirty sectors had to leave."""
    way = 0
    for other in range(tags.size):
        if tags[other] == -1:
            way = other
            break
        if used[other] < used[way]:
            way = other
    left = 0
    for sector in range(SECTORS):
        left += dirty[way, sector]
        valid[way, sector] = dirty[way, sector] = False
    tags[way] = line
    return way, left


@numba.njit(cache=True)
def _walk(  # type: ignore[no-untyped-def]
    sms, sectors, kind, past_l1, tags1, valid1, dirty1, used1, tags2, valid2, dirty2, used2, counts, clock
):
    """One instruction's sectors through both levels."""
    for n in range(sectors.size):
        clock[0] += 1
        sm, line, part = sms[n], sectors[n] // SECTORS, sectors[n] % SECTORS
        home = _set_of(line, tags1.shape[1])
        way = _find(line, tags1[sm, home])
        if kind == READ and not past_l1:
            counts[L1_READS] += 1
            if way >= 0 and valid1[sm, home, way, part]:
                counts[L1_HITS] += 1
                used1[sm, home, way] = clock[0]
                continue
            if way < 0:
                way, _ = _make_room(
                    line, tags1[sm, home], valid1[sm, home], dirty1[sm, home], used1[sm, home]
                )
            valid1[sm, home, way, part] = True
            used1[sm, home, way] = clock[0]
        elif kind == ATOMIC and way >= 0:
            valid1[sm, home, way, part] = False
        home = _set_of(line, tags2.shape[1])
        way = _find(line, tags2[0, home])
        if way < 0:
            way, left = _make_room(line, tags2[0, home], valid2[0, home], dirty2[0, home], used2[0, home])
            counts[DRAM_WRITES] += left
        hit = valid2[0, home, way, part]
        if kind == READ:
            counts[L2_READS] += 1
            counts[L2_READ_HITS] += hit
        elif kind == WRITE:
            counts[L2_WRITES] += 1
        else:
            counts[L2_ATOMICS] += 1
        if kind != WRITE and not hit:
            counts[DRAM_READS] += 1
        if kind != READ:
            dirty2[0, home, way, part] = True
        valid2[0, home, way, part] = True
        used2[0, home, way] = clock[0]
