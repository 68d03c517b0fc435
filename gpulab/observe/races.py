"""Data races: two threads, one word, at least one write, and nothing that puts one before the other.

What orders two accesses: the program of one thread, a barrier of the block, ``syncwarp`` between lanes of one
warp, an mbarrier between those who arrive and those who wait, and between blocks an atomic (or volatile)
access after a fence that another block has seen. The detector does not need the race to go wrong: it
remembers who touched each word last, and what has happened since.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from gpulab.ptx import Location
from gpulab.simt import Access, Allocation, ArrayLabel, Chunk, Observer, Program
from gpulab.simt.errors import Index, source_text
from gpulab.simt.program import is_volatile

from .clocks import Clocks
from .flow import Flow
from .shadow import NOBODY, OTHER_READER, READER, SECOND_READER, WRITER, Shadow, Who

Array = np.ndarray

# What a touch is; BLOCK_ATOMIC is an atomic of block scope (``.cta``), which other blocks do not honour.
READ, WRITE, ATOMIC, BLOCK_ATOMIC = 0, 1, 2, 3
VERBS = {
    READ: "reads",
    WRITE: "writes",
    ATOMIC: "atomically updates",
    BLOCK_ATOMIC: "atomically, for its block only, updates",
}


CUDA_C = (".cu", ".cuh", ".h", ".hpp")  # how files of CUDA C++ end


@dataclass(frozen=True)
class Touch:
    """One side of a race: a thread's access of kind READ, WRITE, ATOMIC or BLOCK_ATOMIC at a source line.

    `linear_thread` counts within the block.
    """

    location: Location | None
    block: Index
    thread: Index
    linear_thread: int
    kind: int

    @property
    def line(self) -> int:
        return self.location.line if self.location else 0


@dataclass(frozen=True)
class Race:
    """Two touches of one word that nothing orders; `first` stands first on the way through the program.

    `space` is shared or global. `element` is the index in the array, flat where its shape is not known;
    `label` is the learner's name of a global array. `place` says where a barrier of all threads would order
    the two: ``after`` the first or ``before`` the second line, empty if neither or not known. `repeated`
    says of two accesses on one line that they belong to different rounds of a loop.
    """

    kernel: str
    space: str
    first: Touch
    second: Touch
    element: tuple[int, ...]
    size: int
    label: str = ""
    place: str = ""
    repeated: bool = False

    @property
    def block(self) -> Index:
        """The block of the second touch."""
        return self.second.block

    @property
    def array(self) -> str:
        """The learner's name of the array: given, or the only one that both source lines index."""
        if self.label:
            return self.label
        names = [
            set(re.findall(r"([A-Za-z_]\w*)\s*\[", source_text(touch.location)))
            for touch in (self.first, self.second)
        ]
        common = names[0] & names[1]
        return common.pop() if len(common) == 1 else ""

    @property
    def within_a_block(self) -> bool:
        return self.first.block == self.second.block

    @property
    def within_a_warp(self) -> bool:
        """Whether both threads belong to one warp, so that ``syncwarp`` is enough."""
        return self.within_a_block and self.first.linear_thread // 32 == self.second.linear_thread // 32

    @property
    def sighting(self) -> str:
        """The two accesses with their lines and threads, and no cure."""
        array = f" `{self.array}`" if self.array else ""
        place = ", ".join(map(str, self.element))
        word = f"{self.array}[{place}]" if self.array else f"element {place}"
        touches = sorted((self.first, self.second), key=lambda t: t.line)
        width = max(len(source_text(t.location)) for t in touches)
        rows = [
            f"    {t.line:4} │ {source_text(t.location):<{width}}   "
            f"thread {t.linear_thread} of block {_short(t.block)} {VERBS[t.kind]} {word}"
            for t in touches
        ]
        lead = f"Race in kernel {self.kernel}, {self.space} array{array}"
        return "\n".join([lead, *rows])

    def __str__(self) -> str:
        return "\n".join([self.sighting, *self._explained()])

    def _explained(self) -> tuple[str, str]:
        earlier, later = self.first.line, self.second.line
        if not self.within_a_block:
            return (
                "Nothing orders two blocks of one launch.",
                "Usual cure: let each block write its own elements, use an atomic, or make it two kernels.",
            )
        c = self.first.location is not None and self.first.location.file.endswith(CUDA_C)
        names = ("__syncwarp()", "__syncthreads()") if c else ("cuda.syncwarp()", "cuda.syncthreads()")
        cure = names[0 if self.within_a_warp else 1]
        members = "warp" if self.within_a_warp else "block"
        at = f"line {earlier if self.place == 'after' else later}"
        usual = f"Usual cure: {cure} {self.place} {at}."
        if self.within_a_warp:
            usual = f"{usual[:-1]}; {names[1]} if other warps share the array, too."
        if earlier == later:
            lead = f"Nothing orders the two accesses of line {earlier}."
            if not self.repeated and READ in (self.first.kind, self.second.kind):
                apart = "write into another array, or have all read before anyone writes; "
                return lead, f"Usual cure: {apart}or an atomic, if threads add to one element."
            if not self.repeated:
                return lead, "Usual cure: let one thread write the element, or use an atomic."
            again = f"Usual cure: {cure} at the end of each pass through the loop, outside any branch; "
            return lead, again + "or an atomic, if threads add to one element."
        if not self.place:
            usual = (
                f"Usual cure: {cure} between the two, outside any branch, where all threads of the {members} "
            )
            usual += "come by."
        if earlier < later:
            return f"No barrier between line {earlier} and line {later}.", usual
        return (
            f"No barrier between line {earlier} and line {later} of the next pass through the loop.",
            usual,
        )


def _short(block: Index) -> str:
    return str(block[0]) if block[1:] == (0, 0) else str(block)


@dataclass(frozen=True)
class _Release:
    """A thread made what its block had written before `epoch` visible, at time `tick`."""

    thread: int
    epoch: int
    tick: int


class Races(Observer):
    """Finds races; read `findings` after the launch, each pair of source lines once.

    `spaces` are the memories looked at; `arrays` names global memory; `find` gives the allocation of memory
    that is no argument, such as the variables of a module.
    """

    def __init__(
        self,
        spaces: tuple[str, ...] = ("shared",),
        arrays: tuple[ArrayLabel, ...] = (),
        find: Callable[[int], Allocation | None] = lambda address: None,
    ) -> None:
        self.findings: list[Race] = []
        self._spaces, self._arrays, self._find = spaces, arrays, find
        self._seen: dict[tuple[object, ...], int] = {}
        self._sites: list[tuple[int, int]] = []  # of the findings: the two instructions
        self._decided: dict[int, Array] = {}  # how often each thread of one block took each branch, and not
        self._example = -1  # that block
        self._shadows: dict[object, Shadow] = {}
        self._releases: dict[int, list[_Release]] = defaultdict(list)  # by block
        self._published: dict[int, dict[int, int]] = defaultdict(
            dict
        )  # address → block → its releases seen there
        self._acquired: dict[int, dict[int, int]] = defaultdict(dict)  # block → block → releases it has seen
        self._clocks: dict[int, Clocks] = {}  # by block, once it uses an mbarrier
        self._tick = self._width = 0

    def start(self, program: object, grid: Index, block: Index) -> None:
        assert isinstance(program, Program)
        self._program, self._grid, self._block = program, grid, block
        blocks = grid[0] * grid[1] * grid[2]
        self._lanes = (block[0] * block[1] * block[2] + 31) // 32 * 32
        self._epoch = np.zeros(blocks, np.int32)
        self._warp_epoch = np.zeros(blocks * self._lanes // 32, np.int32)
        self._fenced = np.full(blocks * self._lanes, -1, np.int64)
        self._wrote = np.full(blocks * self._lanes, -1, np.int64)
        narrow = any(_is_narrow(i.parts) for i in program.instructions)
        self._granule = 1 if narrow else 4
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

    def barrier(self, index: int, lanes: Array | None, chunk: Chunk) -> None:
        passed = np.ones(chunk.blocks.size, bool) if lanes is None else lanes.any(axis=1)
        self._epoch[chunk.blocks] += np.broadcast_to(passed, chunk.blocks.shape)

    def warp_sync(self, index: int, lanes: Array | None, chunk: Chunk) -> None:
        if self._program.instructions[index].parts[0] not in ("bar", "barrier"):
            return  # shuffles and votes exchange registers; they do not order memory
        threads = self._threads(lanes, chunk)
        warps = np.unique(threads // 32)
        self._warp_epoch[warps] += 1
        for block, clocks in self._clocks.items():
            mine = threads[threads // self._lanes == block] % self._lanes
            for warp in np.unique(mine // 32):
                clocks.meet(mine[mine // 32 == warp], self._tick)

    def arrive(self, index: int, address: Array, phase: Array, lanes: Array | None, chunk: Chunk) -> None:
        for block, where, parity, threads in self._apart(address, phase, lanes, chunk):
            clocks = self._clocks.setdefault(block, Clocks(self._lanes))
            clocks.arrive(where, parity, threads, self._tick)

    def passed(self, index: int, address: Array, phase: Array, lanes: Array, chunk: Chunk) -> None:
        for block, where, parity, threads in self._apart(address, phase, lanes, chunk):
            if block in self._clocks:
                self._clocks[block].see(where, parity, threads)

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
        if "cta" in self._program.instructions[index].parts:
            return  # within a block, which it takes a barrier to order
        self._tick += 1
        self._fenced[self._threads(lanes, chunk)] = self._tick

    def _threads(self, lanes: Array | None, chunk: Chunk) -> Array:
        """Global thread numbers of a group."""
        shape = (chunk.blocks.size, chunk.lanes_per_block)
        row, lane = np.nonzero(np.broadcast_to(True if lanes is None else lanes, shape))
        return chunk.blocks[row] * self._lanes + lane

    def _communicate(self, thread: Array, address: Array) -> None:
        """Atomic accesses: a thread that has fenced publishes its block's writes, and sees what others
        published."""
        for who, where in dict.fromkeys(zip(thread.tolist(), address.tolist(), strict=True)):
            block = who // self._lanes
            seen = self._published[where]
            for other, count in seen.items():
                self._acquired[block][other] = max(self._acquired[block].get(other, 0), count)
            if self._fenced[who] > self._wrote[who]:
                self._releases[block].append(_Release(who, int(self._epoch[block]), self._tick))
            for other, count in {**self._acquired[block], block: len(self._releases[block])}.items():
                seen[other] = max(seen.get(other, 0), count)

    def _is_ordered(self, first: int, epoch: int, tick: int, second: int) -> bool:
        """Whether a touch of thread `first` at (epoch, tick) comes before what thread `second` does now."""
        block = first // self._lanes
        count = self._acquired[second // self._lanes].get(block, 0)
        return any(
            release.tick > tick and (release.thread == first or release.epoch > epoch)
            for release in self._releases[block][:count]
        )

    def _is_seen(self, first: int, tick: int, second: int) -> bool:
        """Whether an mbarrier puts what thread `first` did at `tick` before what `second` does now."""
        clocks = self._clocks.get(first // self._lanes)
        return clocks is not None and bool(clocks.before[second % self._lanes, first % self._lanes] >= tick)

    # ---- accesses --------------------------------------------------------------------------------------

    def access(self, access: Access) -> None:
        if access.space not in self._spaces:
            return
        self._tick += 1
        chunk = access.chunk
        shape = (chunk.blocks.size, chunk.lanes_per_block)
        lanes = np.ones(shape, bool) if access.lanes is None else np.broadcast_to(access.lanes, shape)
        row, lane = np.nonzero(lanes)
        thread = chunk.blocks[row] * self._lanes + lane
        address = np.broadcast_to(access.address, shape)[row, lane]
        kind = {"load": READ, "store": WRITE}.get(access.kind, ATOMIC)
        volatile = "volatile" in access.instruction.parts or is_volatile(access.instruction)
        if kind == ATOMIC or volatile:
            kind = BLOCK_ATOMIC if "cta" in access.instruction.parts else ATOMIC
            if access.space == "global" and kind == ATOMIC:
                self._communicate(thread, address)
        elif kind == WRITE:
            self._wrote[thread] = self._tick
        block = thread // self._lanes
        who = Who(thread, self._epoch[block], self._warp_epoch[thread // 32], access.index, self._tick)
        granules = max(access.size // self._granule, 1)
        for shadow, start, chosen in self._stretches(access, address, block, granules):
            part = who if chosen is None else who.only(chosen)
            for i in range(granules):
                value = None
                if kind == WRITE:
                    value = self._values(access, i, granules, shape)[row, lane]
                    value = value if chosen is None else value[chosen]
                self._touch(access, shadow, part, start + i, kind, value)

    def _stretches(
        self, access: Access, address: Array, block: Array, granules: int
    ) -> list[tuple[Shadow, Array, Array | None]]:
        """(shadow, place of each lane's first granule, lanes that it concerns or None for all)."""
        if access.space == "shared":
            shadow = self._shared_shadow(int(address.max(initial=0)) // self._granule + granules)
            return [(shadow, block * self._width + address // self._granule, None)]
        found: list[tuple[Shadow, Array, Array | None]] = []
        rest = np.ones(len(address), bool)
        for label in self._arrays:
            if not rest.any():
                break
            self._take(label.address, label.extent, address, rest, found)
        while rest.any():
            place = int(address[rest][0])
            variable = self._find(place)
            if variable is None:
                break  # a fault follows
            self._take(variable.address, variable.nbytes, address, rest, found)
        return found

    def _take(self, start: int, extent: int, address: Array, rest: Array, found: list) -> None:
        """Move the lanes of `rest` in one stretch of global memory over to `found`."""
        here = rest & (address >= start) & (address < start + extent)
        if here.any():
            if start not in self._shadows:
                self._shadows[start] = Shadow(max(extent // self._granule + 1, 1))
            place = (address - start) // self._granule
            whole = bool(here.all())
            found.append((self._shadows[start], place if whole else place[here], None if whole else here))
            rest &= ~here

    def _shared_shadow(self, needed: int) -> Shadow:
        """The shadow of all blocks' shared memory, `_width` granules each, at least `needed`."""
        blocks = len(self._epoch)
        if "shared" not in self._shadows:
            self._width = max(self._program.shared_bytes // self._granule, needed)
            self._shadows["shared"] = Shadow(blocks * self._width)
        shadow = self._shadows["shared"]
        if needed > self._width:  # dynamic shared memory: nobody has said how large it is
            wider = max(needed, 2 * self._width)
            shadow.widen(blocks, self._width, wider)
            self._width = wider
        return shadow

    def _values(self, access: Access, granule: int, granules: int, shape: tuple[int, int]) -> Array:
        """What each lane writes into its granule, as an integer: equal values written twice do no harm."""
        per_value = max(granules // max(len(access.values), 1), 1)
        value = access.values[min(granule // per_value, len(access.values) - 1)]
        bits = np.ascontiguousarray(value).view(f"i{value.dtype.itemsize}").astype(np.int64)
        return np.broadcast_to(bits, shape)

    def _touch(
        self, access: Access, s: Shadow, who: Who, place: Array, kind: int, value: Array | None
    ) -> None:
        for role in (WRITER,) if kind == READ else (WRITER, READER, SECOND_READER, OTHER_READER):
            unordered = self._unordered(s, role, who, place, kind)
            if role == WRITER and kind == WRITE:
                unordered &= ~((s.index[role, place] == access.index) & (s.value[place] == value))
            if unordered.any():
                self._report(access, s, role, who, place, kind, unordered)
        if kind == READ:
            self._note_readers(s, who, place)
            return
        if value is not None:
            self._check_within(access, who, place, value, WRITE)
            s.value[place] = value
        if kind == BLOCK_ATOMIC:
            self._check_within(access, who, place, who.thread // self._lanes, kind)
        s.kind[place] = kind
        s.note(WRITER, place, who)

    def _unordered(self, s: Shadow, role: int, who: Who, place: Array, kind: int) -> Array:
        """Lanes whose access nothing orders after the touch that is kept in `role`."""
        other = s.thread[role, place]
        unordered = (other != NOBODY) & (other != who.thread)
        if not unordered.any():
            return unordered
        same_block = other // self._lanes == who.thread // self._lanes
        same_warp = other // 32 == who.thread // 32
        unordered &= ~(same_block & (s.since[role, place] < who.now))
        unordered &= ~(same_warp & (s.warp_since[role, place] < who.warp_now))
        if role == WRITER and kind >= ATOMIC:
            before = s.kind[place]
            unordered &= ~((before >= ATOMIC) & (same_block | ((kind == ATOMIC) & (before == ATOMIC))))
        if self._clocks:
            for at in np.flatnonzero(unordered & same_block):
                first, tick = int(other[at]), int(s.tick[role, place[at]])
                unordered[at] = not self._is_seen(first, tick, int(who.thread[at]))
        if self._releases:
            for at in np.flatnonzero(unordered & ~same_block):
                first, since, tick = other[at], s.since[role, place[at]], s.tick[role, place[at]]
                unordered[at] = not self._is_ordered(int(first), int(since), int(tick), int(who.thread[at]))
        return unordered

    def _note_readers(self, s: Shadow, who: Who, place: Array) -> None:
        """Keep the first reader since the last barrier, another one of its warp and one of another warp."""
        old = s.thread[READER, place]
        same_block = old // self._lanes == who.thread // self._lanes
        same_warp = old // 32 == who.thread // 32
        fresh = (old == NOBODY) | (same_block & (s.since[READER, place] != who.now))
        fresh |= same_warp & (s.warp_since[READER, place] != who.warp_now)
        self._note_some(s, READER, who, place, fresh)
        first = s.thread[READER, place]
        apart = first // 32 != who.thread // 32
        second = ~apart & (first != who.thread)
        self._note_some(s, SECOND_READER, who, place, second)
        self._note_some(s, OTHER_READER, who, place, apart)

    @staticmethod
    def _note_some(s: Shadow, role: int, who: Who, place: Array, chosen: Array) -> None:
        if chosen.all():
            s.note(role, place, who)
        elif chosen.any():
            s.note(role, place[chosen], who.only(chosen))

    def _check_within(self, access: Access, who: Who, place: Array, value: Array, kind: int) -> None:
        """Lanes of one access that touch one word with different values."""
        order = np.argsort(place, kind="stable")
        ordered = place[order]
        clash = (ordered[1:] == ordered[:-1]) & (value[order][1:] != value[order][:-1])
        if clash.any():
            at = int(clash.argmax())
            first, second = who.thread[order[at]], who.thread[order[at + 1]]
            self._add(access, access.index, int(first), kind, int(second), kind, int(order[at]), who)

    # ---- findings --------------------------------------------------------------------------------------

    def _report(
        self, access: Access, s: Shadow, role: int, who: Who, place: Array, kind: int, unordered: Array
    ) -> None:
        across = unordered & (
            s.thread[role, place] // 32 != who.thread // 32
        )  # the worse kind, if there is any
        at = int(across.argmax() if across.any() else unordered.argmax())
        before = int(s.kind[place[at]]) if role == WRITER else READ
        first, index = int(s.thread[role, place[at]]), int(s.index[role, place[at]])
        self._add(access, index, first, before, int(who.thread[at]), kind, at, who)

    def _add(
        self,
        access: Access,
        index: int,
        first: int,
        first_kind: int,
        second: int,
        kind: int,
        at: int,
        who: Who,
    ) -> None:
        instructions = self._program.instructions
        sides = [(index, first, first_kind), (access.index, second, kind)]
        if self._is_backwards(index, access.index):
            sides.reverse()
        places = tuple(instructions[i].location or i for i, _, _ in sides)
        known = self._seen.get(places)  # an unrolled loop has many instructions of one line
        if known is not None and (first // 32 == second // 32 or not self.findings[known].within_a_warp):
            return
        address = self._address_of(access, int(who.thread[at]))
        element, size, label = self._element(access, address)
        earlier, later = (self._side(*side) for side in sides)
        race = Race(
            self._program.display_name,
            access.space,
            earlier,
            later,
            element,
            size,
            label,
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
            self.findings[number] = replace(race, place=place, repeated=repeated)

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

    def _element(self, access: Access, address: int) -> tuple[tuple[int, ...], int, str]:
        """(index, bytes of an element, the array's name)."""
        size = max(access.size // max(len(access.values), 1), 1)
        if access.space == "global":
            for label in self._arrays:
                if label.address <= address < label.address + label.extent:
                    return label.index_of(address), label.itemsize, label.name
            variable = self._find(address)
            assert variable is not None
            return ((address - variable.address) // size,), size, variable.name
        start = max((o for o, _ in self._program.shared_variables.values() if o <= address), default=0)
        return ((address - start) // size,), size, ""

    def _side(self, index: int, thread: int, kind: int) -> Touch:
        x, y, _ = self._block
        gx, gy, _ = self._grid
        block, lane = divmod(thread, self._lanes)
        return Touch(
            self._program.instructions[index].location,
            (block % gx, block // gx % gy, block // (gx * gy)),
            (lane % x, lane // x % y, lane // (x * y)),
            lane,
            kind,
        )


def _is_narrow(parts: tuple[str, ...]) -> bool:
    return parts[0] in ("ld", "st", "atom", "red") and parts[-1].lstrip("subf") in ("8", "16")
