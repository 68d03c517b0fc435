"""Data races in shared memory: two threads of a block, one word, at least one write, nothing in between.

Accesses are ordered by the barriers of the block, and between lanes of one warp by ``syncwarp``. The detector
does not need the race to go wrong: it remembers who touched each word last, and since which barrier.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpulab.ptx import Location
from gpulab.simt import Access, Chunk, Observer, Program
from gpulab.simt.errors import Index, indexed_names, source_text

Array = np.ndarray

NOBODY = -1
READ, WRITE, ATOMIC = 0, 1, 2
VERBS = {READ: "reads", WRITE: "writes", ATOMIC: "atomically updates"}


@dataclass(frozen=True)
class Touch:
    """One side of a race: a thread's access of kind READ, WRITE or ATOMIC at a source line."""

    location: Location | None
    thread: Index
    linear_thread: int
    kind: int

    @property
    def line(self) -> int:
        return self.location.line if self.location else 0


@dataclass(frozen=True)
class Race:
    """Two touches of one word of shared memory that nothing orders; `first` came first in this run.

    `element` counts in elements of `size` bytes.
    """

    kernel: str
    block: Index
    first: Touch
    second: Touch
    element: int
    size: int

    @property
    def array(self) -> str:
        """The learner's name of the array, where the two source lines leave only one choice."""
        common = indexed_names(self.first.location) & indexed_names(self.second.location)
        return common.pop() if len(common) == 1 else ""

    @property
    def within_a_warp(self) -> bool:
        """Whether both threads belong to one warp, so that ``syncwarp`` is enough."""
        return self.first.linear_thread // 32 == self.second.linear_thread // 32

    def __str__(self) -> str:
        array = f" `{self.array}`" if self.array else ""
        word = f"{self.array}[{self.element}]" if self.array else f"element {self.element}"
        touches = sorted((self.first, self.second), key=lambda t: t.line)
        width = max(len(source_text(t.location)) for t in touches)
        rows = [
            f"    {t.line:4} │ {source_text(t.location):<{width}}   "
            f"thread {t.linear_thread} of block {_short(self.block)} {VERBS[t.kind]} {word}"
            for t in touches
        ]
        cure = "cuda.syncwarp()" if self.within_a_warp else "cuda.syncthreads()"
        earlier, later = self.first.line, self.second.line
        if earlier < later:
            between = f"No barrier between line {earlier} and line {later}."
        elif earlier > later:
            between = f"No barrier between line {earlier} and line {later} of the next pass through the loop."
        else:
            between = f"Nothing orders the two accesses of line {earlier}."
        lead = f"Race in kernel {self.kernel}, shared array{array}"
        return "\n".join([lead, *rows, between, f"Usual cure: {cure} after line {earlier}."])


def _short(block: Index) -> str:
    return str(block[0]) if block[1:] == (0, 0) else str(block)


class _Shadow:
    """Who touched each granule of shared memory last, for the blocks of one chunk."""

    def __init__(self, blocks: int, granules: int, warps: int):
        shape = (blocks, granules)
        self.epoch = np.zeros(blocks, np.int32)
        self.warp_epoch = np.zeros((blocks, warps), np.int32)
        # last writer, first reader, a reader of another warp than the first: thread, epochs and instruction
        # of each
        self.thread = np.full((3, *shape), NOBODY, np.int32)
        self.since = np.zeros((3, *shape), np.int32)
        self.warp_since = np.zeros((3, *shape), np.int32)
        self.index = np.zeros((3, *shape), np.int32)
        self.kind = np.zeros(shape, np.int8)
        self.value = np.zeros(shape, np.int64)


WRITER, READER, OTHER_READER = 0, 1, 2


class Races(Observer):
    """Finds races in shared memory; read `findings` after the launch, each pair of source lines once."""

    def __init__(self) -> None:
        self.findings: list[Race] = []
        self._seen: dict[tuple[object, ...], int] = {}
        self._shadows: dict[int, tuple[Chunk, _Shadow]] = {}

    def start(self, program: object, grid: Index, block: Index) -> None:
        assert isinstance(program, Program)
        self._program, self._grid, self._block = program, grid, block
        narrow = any(
            "shared" in i.parts and i.parts[-1].lstrip("subf") in ("8", "16") for i in program.instructions
        )
        self._granule = 1 if narrow else 4

    def barrier(self, index: int, lanes: Array | None, chunk: Chunk) -> None:
        shadow = self._shadow(chunk)
        if lanes is None:
            shadow.epoch += 1
        else:
            shadow.epoch += np.broadcast_to(lanes.any(axis=1), shadow.epoch.shape)

    def warp_sync(self, index: int, lanes: Array | None, chunk: Chunk) -> None:
        if self._program.instructions[index].parts[0] not in ("bar", "barrier"):
            return  # shuffles and votes exchange registers; they do not order memory
        shadow = self._shadow(chunk)
        if lanes is None:
            shadow.warp_epoch += 1
        else:
            there = lanes.reshape(lanes.shape[0], -1, 32).any(axis=2)
            shadow.warp_epoch += np.broadcast_to(there, shadow.warp_epoch.shape)

    def access(self, access: Access) -> None:
        if access.space != "shared":
            return
        chunk = access.chunk
        shadow = self._shadow(chunk)
        shape = (chunk.blocks.size, chunk.lanes_per_block)
        lanes = np.ones(shape, bool) if access.lanes is None else np.broadcast_to(access.lanes, shape)
        row, thread = np.nonzero(lanes)
        start = np.broadcast_to(access.address, shape)[row, thread] // self._granule
        kind = {"load": READ, "store": WRITE}.get(access.kind, ATOMIC)
        granules = max(access.size // self._granule, 1)
        shadow = self._grown(chunk, int(start.max(initial=0)) + granules)
        for i in range(granules):
            value = self._values(access, i, granules, shape)[row, thread] if kind == WRITE else None
            self._touch(access, shadow, row, thread.astype(np.int32), start + i, kind, value)

    def _values(self, access: Access, granule: int, granules: int, shape: tuple[int, int]) -> Array:
        """What each lane writes into its granule, as an integer, to tell harmless from harmful double
        writes."""
        per_value = max(granules // max(len(access.values), 1), 1)
        value = access.values[min(granule // per_value, len(access.values) - 1)]
        bits = np.ascontiguousarray(value).view(f"i{value.dtype.itemsize}").astype(np.int64)
        return np.broadcast_to(bits, shape)

    def _shadow(self, chunk: Chunk) -> _Shadow:
        if id(chunk) not in self._shadows:
            granules = max(self._program.shared_bytes // self._granule, 1)
            self._shadows[id(chunk)] = chunk, _Shadow(chunk.blocks.size, granules, chunk.warps_per_block)
        return self._shadows[id(chunk)][1]

    def _grown(self, chunk: Chunk, granules: int) -> _Shadow:
        """The chunk's shadow with room for at least so many granules: dynamic shared memory has no size in
        the program."""
        shadow = self._shadow(chunk)
        have = shadow.kind.shape[1]
        if granules > have:
            more = max(granules, 2 * have) - have
            wide = [(0, 0), (0, 0), (0, more)]
            shadow.thread = np.pad(shadow.thread, wide, constant_values=NOBODY)
            shadow.since, shadow.warp_since = np.pad(shadow.since, wide), np.pad(shadow.warp_since, wide)
            shadow.index = np.pad(shadow.index, wide)
            shadow.kind, shadow.value = np.pad(shadow.kind, wide[1:]), np.pad(shadow.value, wide[1:])
        return shadow

    def _touch(
        self,
        access: Access,
        s: _Shadow,
        row: Array,
        thread: Array,
        place: Array,
        kind: int,
        value: Array | None,
    ) -> None:
        now, warp_now = s.epoch[row], s.warp_epoch[row, thread // 32]
        for role in (WRITER,) if kind == READ else (WRITER, READER, OTHER_READER):
            other = s.thread[role, row, place]
            unordered = (other != NOBODY) & (other != thread) & (s.since[role, row, place] == now)
            same_warp = other // 32 == thread // 32
            unordered &= ~(same_warp & (s.warp_since[role, row, place] < warp_now))
            if role == WRITER:
                if kind == ATOMIC:
                    unordered &= s.kind[row, place] != ATOMIC
                elif kind == WRITE and value is not None:
                    again = (s.index[role, row, place] == access.index) & (s.value[row, place] == value)
                    unordered &= ~again
            if unordered.any():
                across = unordered & ~same_warp  # the worse kind, if there is any
                at = int(across.argmax() if across.any() else unordered.argmax())
                before = s.kind[row[at], place[at]] if role == WRITER else READ
                self._report(access, s, role, int(before), row[at], thread[at], place[at], kind)
        if kind == READ:
            self._note_readers(access, s, row, thread, place, now, warp_now)
            return
        if value is not None:
            self._check_within(access, row, thread, place, value)
            s.value[row, place] = value
        s.kind[row, place] = kind
        self._note(access, s, WRITER, row, thread, place, now, warp_now)

    def _note(self, access: Access, s: _Shadow, role: int, *where: Array) -> None:
        row, thread, place, now, warp_now = where
        s.thread[role, row, place] = thread
        s.since[role, row, place] = now
        s.warp_since[role, row, place] = warp_now
        s.index[role, row, place] = access.index

    def _note_readers(self, access: Access, s: _Shadow, *where: Array) -> None:
        row, thread, place, now, warp_now = where
        fresh = (s.thread[READER, row, place] == NOBODY) | (s.since[READER, row, place] != now)
        self._note(access, s, READER, row[fresh], thread[fresh], place[fresh], now[fresh], warp_now[fresh])
        other = s.thread[READER, row, place] // 32 != thread // 32
        self._note(
            access, s, OTHER_READER, row[other], thread[other], place[other], now[other], warp_now[other]
        )

    def _check_within(self, access: Access, row: Array, thread: Array, place: Array, value: Array) -> None:
        """Lanes of one store that write different values to one word."""
        key = row.astype(np.int64) << 32 | place
        order = np.argsort(key, kind="stable")
        ordered = key[order]
        clash = (ordered[1:] == ordered[:-1]) & (value[order][1:] != value[order][:-1])
        if clash.any():
            at = int(clash.argmax())
            first, second = order[at], order[at + 1]
            self._add(
                access,
                access.index,
                int(row[first]),
                int(thread[first]),
                WRITE,
                int(thread[second]),
                WRITE,
                int(place[first]),
            )

    def _report(
        self, access: Access, s: _Shadow, role: int, before: int, row: int, thread: int, place: int, kind: int
    ) -> None:
        first, first_index = int(s.thread[role, row, place]), int(s.index[role, row, place])
        self._add(access, first_index, int(row), first, before, int(thread), kind, int(place))

    def _add(
        self,
        access: Access,
        first_index: int,
        row: int,
        first: int,
        first_kind: int,
        second: int,
        second_kind: int,
        place: int,
    ) -> None:
        instructions = self._program.instructions
        places = tuple(instructions[i].location or i for i in (first_index, access.index))
        known = self._seen.get(places)  # an unrolled loop has many instructions of one line
        within_a_warp = first // 32 == second // 32
        if known is not None and (within_a_warp or not self.findings[known].within_a_warp):
            return
        byte = place * self._granule
        start = max((o for o, _ in self._program.shared_variables.values() if o <= byte), default=0)
        size = max(access.size // max(len(access.values), 1), 1)
        x, y, _ = self._grid
        linear = int(access.chunk.blocks[row])
        race = Race(
            self._program.display_name,
            (linear % x, linear // x % y, linear // (x * y)),
            Touch(instructions[first_index].location, self._thread(first), first, first_kind),
            Touch(instructions[access.index].location, self._thread(second), second, second_kind),
            (byte - start) // size,
            size,
        )
        if known is not None:
            self.findings[known] = race
        else:
            self._seen[places] = len(self.findings)
            self.findings.append(race)

    def _thread(self, linear: int) -> Index:
        x, y, _ = self._block
        return linear % x, linear // x % y, linear // (x * y)
