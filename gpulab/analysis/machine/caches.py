"""The caches between a kernel and DRAM, simulated by sector: an L1 for each SM, one L2.

A line is 128 B, of which each 32-byte sector comes and goes alone. Loads look in the L1 of their SM, then in
the L2, then in DRAM. Stores go through to the L2 (and update the L1's copy); atomics work there. Bulk copies
(TMA) go between shared memory and the L2 and pass the L1 by; a multicast reads the L2 once. What the L2
drops after it has been written goes to DRAM. Block b runs on SM b modulo the number of SMs, and blocks that
are simulated at once take turns, instruction by instruction, warp by warp.

What no maker publishes is assumed: 16 ways, least recently used goes first, the set is a hash of the line's
number. Local memory, constants and textures are left out.

A warp waits for the last of its sectors. So each load also counts what its warps had to wait for: the L1,
the L2 or DRAM. If another warp has asked for the sector in the same instruction, it is still on its way: the
caches count a hit, but the second warp waits as long as the first.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import numba
import numpy as np

from gpulab.analysis.profile.modelled import Traffic
from gpulab.simulator.hardware import pipelines
from gpulab.simulator.hardware.gpu import GPU
from gpulab.simulator.observe.patterns import SECTOR
from gpulab.simulator.simt import Access, Observer, Transfer
from gpulab.simulator.simt.opcodes import is_volatile

Array = np.ndarray

LINE, WAYS = 128, 16
SECTORS = LINE // SECTOR
TAG = 46  # bits of a sector's number: addresses have 51 at most
READ, WRITE, ATOMIC = 0, 1, 2
# What is counted, in sectors.
L1_READS, L1_HITS, L2_READS, L2_READ_HITS, L2_WRITES, L2_ATOMICS, DRAM_READS, DRAM_WRITES, L2_LINES = range(9)
BESIDE = 3  # in place of a level: the sector came along with its neighbour, and nobody has asked for it
IN_L1 = 4  # beside a level: the L1 has the sector, or has sent for it
WORDS = SECTOR // 4  # of a sector
PENDING = 1 << 18  # lines of atomics that wait to be added up
LEVELS = ("L1", "L2", "DRAM")  # where the last sector that a warp waits for comes from


class Caches(Observer):
    """Simulates the caches of a GPU; read `traffic` after the launch. They are empty at its start, as under
    Nsight Compute, which flushes them. One that watches several launches keeps what it has; `steps` is what
    each of them added. `waits` says, for each line of the PTX that reads global memory, how many of its warps
    waited for each of `LEVELS`.

    `shared_bytes` is the part of each SM's memory that is shared memory; the rest is the L1. `added_up` are
    the lines of the PTX whose atomics a warp adds up before one of its lanes carries them out. `code_bytes`
    come from DRAM for the kernel itself, whatever it loads.
    """

    wants_values = False

    def __init__(
        self, gpu: GPU, shared_bytes: int = 0, added_up: Set[int] = frozenset(), code_bytes: int = 0
    ) -> None:
        self._added_up = added_up
        self.sms = int(gpu.sms)
        self._fetch = int(pipelines.l2_fetch(gpu.cc)) // SECTOR
        self.waits: dict[int, Array] = {}
        self._instructions = 0
        self._l1 = _Cache(int(gpu.l1_bytes) - shared_bytes, self.sms)
        self._l2 = _Cache(int(gpu.l2_bytes), 1)
        self._counts = np.zeros(9, np.int64)
        self._counts[DRAM_READS] = -(-code_bytes // SECTOR)
        self._clock = np.zeros(1, np.int64)
        self._updates: list[tuple[Array, Array]] = []  # lines that atomics update, and in how many passes
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
            updated, place = np.unique(warp << TAG | address // SECTOR, return_inverse=True)
            words = np.bincount(place * WORDS + address % SECTOR // 4, minlength=WORDS * updated.size)
            once = access.instruction.line in self._added_up
            passes = np.ones(updated.size, np.int64) if once else words.reshape(-1, WORDS).max(1)
            self._update((updated & ((1 << TAG) - 1)) // SECTORS, passes)
        self._instructions += 1
        levels = np.zeros(keys.size, np.int64)
        _walk(
            sm, sectors, kind, past_l1, self._fetch, *self._l1.state, *self._l2.state,
            self._counts, self._clock, self._instructions, levels,
        )  # fmt: skip
        lines = np.unique(keys[levels & IN_L1 == 0] // SECTORS).size
        in_part = kind == WRITE and access.size * row.size < SECTOR * keys.size
        self._counts[L2_LINES] += 2 * lines if in_part else lines
        if kind != WRITE:
            first = np.flatnonzero(np.diff(keys >> TAG, prepend=-1))
            waited = np.bincount(np.maximum.reduceat(levels & ~IN_L1, first), minlength=len(LEVELS))
            line = access.instruction.line
            self.waits[line] = self.waits.get(line, 0) + waited

    def bulk(self, transfer: Transfer) -> None:
        if transfer.address is None or transfer.kind == "exchange":
            return
        inside = np.broadcast_to(True if transfer.inside is None else transfer.inside, transfer.address.shape)
        copy, element = np.nonzero(inside)
        if not copy.size:
            return
        address = transfer.address[copy, element].astype(np.int64)
        ends = [(address + at) // SECTOR for at in (0, transfer.size - 1)]
        keys = np.unique(np.tile(copy << TAG, 2) | np.concatenate(ends))
        sm = transfer.chunk.blocks[transfer.row[keys >> TAG]] % self.sms
        sectors = keys & ((1 << TAG) - 1)
        kind = {"load": READ, "prefetch": READ, "store": WRITE}.get(transfer.kind, ATOMIC)
        if kind == ATOMIC:
            self._update(sectors // SECTORS, np.ones(keys.size, np.int64))
        self._instructions += 1
        _walk(
            sm, sectors, kind, True, self._fetch, *self._l1.state, *self._l2.state,
            self._counts, self._clock, self._instructions, np.zeros(keys.size, np.int64),
        )  # fmt: skip
        self._counts[L2_LINES] += np.unique(keys // SECTORS).size

    def _update(self, lines: Array, passes: Array) -> None:
        self._updates.append((lines, passes))
        if sum(lines.size for lines, _ in self._updates) > PENDING:
            self._add_up()

    def _add_up(self) -> Array:
        """How many passes each line took."""
        if not self._updates:
            return np.zeros(0, np.int64)
        lines, place = np.unique(np.concatenate([lines for lines, _ in self._updates]), return_inverse=True)
        times = np.zeros(lines.size, np.int64)
        np.add.at(times, place, np.concatenate([passes for _, passes in self._updates]))
        self._updates = [(lines, times)]
        return times

    def end(self) -> None:
        hottest = int(self._add_up().max(initial=0))
        *counts, lines = self._counts
        self._marks.append(np.array([*counts, self._l2.dirty.sum(), hottest, lines]))

    @property
    def steps(self) -> Sequence[Array]:
        """What each launch added to the fields of `Traffic`."""
        return [after - before for before, after in zip(self._marks, self._marks[1:], strict=False)]

    @property
    def traffic(self) -> Traffic:
        """What went where, in all launches."""
        return Traffic(*map(int, self._marks[-1]))


class _Cache:
    """`copies` caches of `nbytes` bytes: tags, sectors that are valid and dirty, the time of last use, and
    with which instruction each sector came, times 4, plus the level that it came from, or BESIDE."""

    def __init__(self, nbytes: int, copies: int) -> None:
        sets = max(nbytes // (LINE * WAYS), 1)
        self.tags = np.full((copies, sets, WAYS), -1, np.int64)
        self.valid = np.zeros((copies, sets, WAYS, SECTORS), np.bool_)
        self.dirty = np.zeros((copies, sets, WAYS, SECTORS), np.bool_)
        self.used = np.zeros((copies, sets, WAYS), np.int64)
        self.came = np.zeros((copies, sets, WAYS, SECTORS), np.int64)

    @property
    def state(self) -> tuple[Array, Array, Array, Array, Array]:
        return self.tags, self.valid, self.dirty, self.used, self.came


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
def _level(came, instruction, own):  # type: ignore[no-untyped-def]
    """Where a sector that is found comes from: still from beyond, if this very instruction sent for it."""
    return min(came & 3, 2) if came >> 2 == instruction else own


@numba.njit(cache=True)
def _walk(  # type: ignore[no-untyped-def]
    sms, sectors, kind, past_l1, fetch, tags1, valid1, dirty1, used1, came1, tags2, valid2, dirty2, used2,
    came2, counts, clock, instruction, levels,
):  # fmt: skip
    """One instruction's sectors through both levels. `levels` is filled with where each was found."""
    for n in range(sectors.size):
        clock[0] += 1
        sm, line, part = sms[n], sectors[n] // SECTORS, sectors[n] % SECTORS
        home1 = _set_of(line, tags1.shape[1])
        way1 = _find(line, tags1[sm, home1])
        keeps = kind == READ and not past_l1
        if keeps:
            counts[L1_READS] += 1
            if way1 >= 0 and valid1[sm, home1, way1, part]:
                counts[L1_HITS] += 1
                used1[sm, home1, way1] = clock[0]
                levels[n] = IN_L1 | _level(came1[sm, home1, way1, part], instruction, 0)
                continue
            if way1 < 0:
                way1, _ = _make_room(
                    line, tags1[sm, home1], valid1[sm, home1], dirty1[sm, home1], used1[sm, home1]
                )
            valid1[sm, home1, way1, part] = True
            used1[sm, home1, way1] = clock[0]
        elif kind == ATOMIC and way1 >= 0:
            valid1[sm, home1, way1, part] = False
        home = _set_of(line, tags2.shape[1])
        way = _find(line, tags2[0, home])
        if way < 0:
            way, left = _make_room(line, tags2[0, home], valid2[0, home], dirty2[0, home], used2[0, home])
            counts[DRAM_WRITES] += left
        came = came2[0, home, way, part]
        there = valid2[0, home, way, part]
        hit = there and came != instruction << 2 | BESIDE
        if kind == READ:
            counts[L2_READS] += 1
            counts[L2_READ_HITS] += hit
        elif kind == WRITE:
            counts[L2_WRITES] += 1
        else:
            counts[L2_ATOMICS] += 1
        levels[n] = _level(came, instruction, 1) if there else 2
        if kind != WRITE:
            if not there:
                first = part // fetch * fetch
                for near in range(first, first + fetch):
                    if not valid2[0, home, way, near]:
                        counts[DRAM_READS] += 1
                        valid2[0, home, way, near] = True
                        came2[0, home, way, near] = instruction << 2 | BESIDE
            came2[0, home, way, part] = came2[0, home, way, part] >> 2 << 2 | 2
        if keeps:
            came1[sm, home1, way1, part] = instruction << 2 | levels[n]
        if kind != READ:
            dirty2[0, home, way, part] = True
        valid2[0, home, way, part] = True
        used2[0, home, way] = clock[0]
