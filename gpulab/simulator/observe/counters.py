"""The observer that counts what Nsight Compute counts: requests, sectors, wavefronts, lanes, branches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from gpulab.simulator.ptx import Instruction, Vector, by_opcode
from gpulab.simulator.simt import Access, Chunk, Observer, Program, TensorProduct, Transfer
from gpulab.simulator.simt.compiled import are_accesses_worth_compiling
from gpulab.simulator.simt.types import widened
from gpulab.simulator.simt.warpgroup_matrices import THREADS, bytes_read

from . import compiled_patterns, patterns
from .counts import COLUMNS, Counts

Array = np.ndarray

# How the accesses of a space are counted; all others as global memory.
ANALYSES = {
    "shared": patterns.wavefronts,
    "local": patterns.local_sectors,
    "const": patterns.constant_passes,
}
COMPILED = {
    patterns.sectors: compiled_patterns.sectors,
    patterns.wavefronts: compiled_patterns.wavefronts,
}
REMEMBERED = 1024  # patterns of accesses whose cost is kept …
REMEMBERED_LANES = 1024  # … of so many lanes: those of one block, or alike in all blocks
HAND_OVERS = frozenset({"barrier", "mbarrier", "atomic"})  # kinds by which a warp can wait for another
STRONG = frozenset({"acquire", "relaxed", "volatile"})  # what other threads store may be seen by it
WIDEST = 512  # bytes of one request: 16 of each lane
SPACES = ("global", "shared", "local", "const", "param")
ELSEWHERE = ("shared", "local")  # where a generic address may lead beside global memory
KINDS = {
    "ld": "load",
    "ldu": "load",
    "ldmatrix": "load",
    "st": "store",
    "stmatrix": "store",
    "atom": "atomic",
    "red": "atomic",
    "bra": "branch",
    "brx": "branch",
    "shfl": "shuffle",
    "vote": "warp_sync",
    "match": "warp_sync",
    "redux": "warp_sync",
    "elect": "warp_sync",
    "membar": "other",
    "fence": "other",
    "ret": "other",
    "exit": "other",
    "trap": "other",
    "call": "other",
    **dict.fromkeys(("tex", "tld4", "suld", "sust"), "other"),
    "nanosleep": "other",
    "mbarrier": "mbarrier",
}


WGMMA = {"mma_async": ("matrix", "shared"), "wait_group": ("matrix_wait", "")}
TCGEN05 = {
    "mma": ("tensor_product", "shared"),
    "ld": ("tensor_load", "tensor"),
    "st": ("tensor_store", "tensor"),
    "cp": ("tensor_copy", "tensor"),
}
# Bulk copies by what they do, as their events call it; `space` is where they were sent from or to.
BULK = {
    "load": ("bulk_load", "global"),
    "store": ("bulk_store", "global"),
    "reduction": ("bulk_reduction", "global"),
    "prefetch": ("bulk_prefetch", "global"),
    "exchange": ("bulk_exchange", "cluster"),
}

# In their ``.approx`` form each is one instruction of the special function unit; exact forms are sequences.
SPECIAL = ("ex2", "lg2", "sin", "cos", "tanh", "rcp", "rsqrt", "sqrt")


@by_opcode
def classify(instruction: Instruction) -> tuple[str, str]:
    """(kind, space) of an instruction, as `Counts.kinds` lists them; global where it names no space.

    >>> text = ".version 8.0 .target sm_80 .address_size 64 .visible .entry k() { .reg .b32 %r<2>; "
    >>> text += "st.shared.u32 [0], %r1; ret; }"
    >>> classify(gpulab.simulator.ptx.parse(text).functions["k"].blocks[0].instructions[0])
    ('store', 'shared')
    """
    name = instruction.parts[0]
    if instruction.parts[:2] == ("barrier", "cluster"):
        return ("cluster_barrier" if "wait" in instruction.parts else "other"), ""
    if name in ("bar", "barrier"):
        return ("warp_sync" if "warp" in instruction.parts else "barrier"), ""
    if name in SPECIAL and "approx" in instruction.parts:
        return "special", ""
    if (bulk := bulk_kind(instruction)) is not None:
        return BULK[bulk]
    if is_copy(instruction):
        return "load", "global"
    if name == "cp" and {"wait_group", "wait_all"} & set(instruction.parts):
        return "copy_wait", ""
    if name == "wgmma":
        return WGMMA.get(instruction.parts[1], ("other", ""))
    if name == "tcgen05":
        return TCGEN05.get(instruction.parts[1], ("other", ""))
    kind = instruction.parts[1] if is_fragment(instruction) else KINDS.get(name, "arithmetic")
    if kind not in ("load", "store", "atomic"):
        return kind, ""
    return kind, named_space(instruction) or "global"


def named_space(instruction: Instruction) -> str:
    """The space that an opcode names; empty for a generic address, which the hardware looks up."""
    spaces = (part.partition("::")[0] for part in instruction.parts[1:])
    return next((s for s in spaces if s in SPACES), "")


@by_opcode
def is_generic(instruction: Instruction) -> bool:
    """Whether it accesses memory through a generic address."""
    return not named_space(instruction) and classify(instruction)[0] in ("load", "store", "atomic")


@by_opcode
def is_strong(instruction: Instruction) -> bool:
    """Whether it is a load by which a warp can wait for what another stores."""
    return not STRONG.isdisjoint(instruction.parts) and classify(instruction)[0] == "load"


@by_opcode
def elsewhere(instruction: Instruction) -> tuple[str, ...]:
    """The spaces in which an instruction has a row more."""
    return ELSEWHERE if is_generic(instruction) else ("shared",) if is_copy(instruction) else ()


@by_opcode
def bulk_kind(instruction: Instruction) -> str | None:
    """What a bulk copy does, as `simt.events.Transfer` calls it; None for all else."""
    parts = instruction.parts
    if parts[0] in ("st", "red"):
        return "exchange" if "async" in parts else None
    if parts[0] != "cp" or "bulk" not in parts or {"commit_group", "wait_group"} & set(parts):
        return None
    if "prefetch" in parts:
        return "prefetch"
    if "global" not in parts:
        return "exchange"
    if any(part.startswith("mbarrier") for part in parts):
        return "load"
    return "reduction" if parts[1] == "reduce" else "store"


@by_opcode
def is_copy(instruction: Instruction) -> bool:
    """Whether it sends words from global to shared memory: ``cp.async``, and not one that waits for it."""
    parts = instruction.parts
    return parts[0] == "cp" and "global" in parts and "bulk" not in parts


@by_opcode
def is_product(instruction: Instruction) -> bool:
    """Whether a warpgroup asks for a product by it: ``wgmma.mma_async``."""
    return instruction.parts[:2] == ("wgmma", "mma_async")


def tensor_registers(instruction: Instruction) -> int:
    """Registers that each thread moves between itself and Tensor Memory; 0 for all other instructions."""
    if instruction.parts[0] != "tcgen05" or instruction.parts[1] not in ("ld", "st"):
        return 0
    registers = instruction.operands[0 if instruction.parts[1] == "ld" else -1]
    return len(registers.items) if isinstance(registers, Vector) else 1


@by_opcode
def is_fragment(instruction: Instruction) -> bool:
    """Whether a warp loads or stores a matrix by it: ``wmma.load`` and ``wmma.store``."""
    return instruction.parts[0] == "wmma" and instruction.parts[1] in ("load", "store")


@dataclass(slots=True)
class _Again:
    """An access to shared memory, what it cost, and how often it came again since. In the iterations of
    a loop the addresses are not only equal but the same array, so no contents need to be compared."""

    address: Array
    lanes: Array | None
    chunk: Chunk
    row: int
    amounts: Mapping[str, int]
    times: int = 0

    def is_like(self, access: Access) -> bool:
        return (
            access.address is self.address
            and access.lanes is self.lanes
            and access.chunk is self.chunk
            and access.space == "shared"
        )


class Counters(Observer):
    """Fills a `Counts`; read it from `counts` after the launch. One `Counters` serves one launch.

    An instruction has one row. ``cp.async`` has two, because it loads from global memory and stores to shared
    memory. One with a generic address has a row more for each other space: what is counted is where the
    access went, not what the opcode says. So does one that reaches the shared memory of another block of the
    cluster. A bulk copy is one request, sent by one lane; a multicast is counted once.
    ``wgmma`` reads its operands by itself: their bytes count once for a warpgroup, in passes of all banks. So
    does ``tcgen05.mma``, for which one thread asks.
    """

    wants_values = False

    def __init__(self) -> None:
        self.counts: Counts | None = None
        self._passes: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
        self._guarded: dict[int, int] = defaultdict(int)
        self._table: dict[str, Array] = {}
        self._rows: dict[tuple[int, str], int] = {}  # beyond the first, by instruction and space
        self._costs: dict[tuple[object, ...], tuple[int, int, int]] = {}
        self._fragment: list[Array] = []  # the addresses of a matrix, as far as they have come
        self._again: dict[int, _Again] = {}  # by instruction
        self._last: tuple[Array | None, int, int, int] = (None, -1, 0, 0)
        # Bytes of loads, and of loads and atomics, of each block of a chunk, by the chunk's id.
        self._asked: dict[int, tuple[Chunk, Array]] = {}
        self._handed: dict[int, tuple[Chunk, Array]] = {}  # warps that hand over, of each block of a chunk

    def start(self, program: Program, grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
        self._program, self._grid, self._block = program, grid, block
        places = [(i, space) for i, each in enumerate(program.instructions) for space in elsewhere(each)]
        self._rows = {place: row for row, place in enumerate(places, len(program.instructions))}
        self._table = {
            column: np.zeros(len(program.instructions) + len(places), np.int64) for column in COLUMNS
        }
        hands_over = [classify(each)[0] in HAND_OVERS or is_strong(each) for each in program.instructions]
        self._hand_overs_before = [0, *accumulate(hands_over)]

    def executed(self, first: int, stop: int, lanes: Array | None, chunk: Chunk) -> None:
        warps, threads = self._size(lanes, chunk)
        entry = self._passes[first, stop]
        entry[0] += warps
        entry[1] += threads
        if times := self._hand_overs_before[stop] - self._hand_overs_before[first]:
            self._hand_over(times, lanes, chunk)

    def guarded(self, index: int, lanes: Array, chunk: Chunk) -> None:
        self._guarded[index] += _count(lanes, chunk)

    def branch(self, index: int, lanes: Array | None, taken: Array, chunk: Chunk) -> None:
        warps, _ = self._size(lanes, chunk)
        if taken.shape[1] == 1:  # one decision for a whole block
            self._table["uniform"][index] += warps
            return
        taken, there = _together(taken, lanes, chunk)
        if taken.dtype != bool:
            split = int((patterns.distinct(taken, there) > 1).sum())
        elif are_accesses_worth_compiling(taken.size):
            split = compiled_patterns.split(taken, there)
        else:
            split = patterns.split(taken, there)
        self._table["uniform"][index] += warps - split * _times(len(taken), chunk)

    def access(self, access: Access) -> None:
        known = self._again.get(access.index)
        if known is not None and known.is_like(access):
            known.times += 1
            return
        index = self._row(access)
        table = self._table
        if access.space == "global" and access.kind != "store":
            self._ask(access)
        if is_fragment(access.instruction):
            self._element(access)
            return
        if access.space == "shared" and is_product(access.instruction):
            return
        warps, threads = self._size(access.lanes, access.chunk)
        amounts = {"requests": warps, "bytes": threads * access.size}
        if access.space == "cluster":
            self._add(index, amounts)
            return
        what = "wavefronts" if access.space in ("shared", "const") else "sectors"
        amounts[what], amounts[f"ideal_{what}"] = self._cost(access)
        self._add(index, amounts)
        if access.space == "shared" and access.kind in ("load", "store") and len(access.address) == 1:
            if known is not None:
                self._add(known.row, known.amounts, known.times)
            self._again[access.index] = _Again(access.address, access.lanes, access.chunk, index, amounts)
        if access.kind in ("atomic", "reduction"):
            rows, lanes = _together(access.address, access.lanes, access.chunk)
            apart = int(patterns.distinct(rows, lanes).sum()) * _times(len(rows), access.chunk)
            table["conflicts"][index] += threads - apart

    def bulk(self, transfer: Transfer) -> None:
        table, index = self._table, transfer.index
        table["requests"][index] += transfer.row.size
        if transfer.address is None:
            assert transfer.offset is not None
            table["bytes"][index] += transfer.offset.size * transfer.size
            return
        nbytes, sectors, ideal = patterns.box_sectors(transfer.address, transfer.size, transfer.inside)
        table["bytes"][index] += nbytes
        table["sectors"][index] += sectors
        table["ideal_sectors"][index] += ideal
        if transfer.kind == "load":
            there = transfer.address.shape[1] if transfer.inside is None else transfer.inside.sum(axis=1)
            for asked in self._asked_in(transfer.chunk):
                np.add.at(asked, transfer.row, there * transfer.size)

    def waited(self, index: int, arrived: Array, left: Array, chunk: Chunk) -> None:
        self._table["bytes"][index] += int(arrived.sum())
        self._table["behind"][index] += int((arrived * left).sum())

    def tensor_product(self, product: TensorProduct) -> None:
        table, index = self._table, product.index
        table["requests"][index] += 1
        table["bytes"][index] += product.nbytes
        for column in ("wavefronts", "ideal_wavefronts"):
            table[column][index] += -(-product.nbytes // patterns.LINE)
        if "kind::i8" not in self._program.instructions[index].parts:
            table["flops"][index] += 2 * product.m * product.n * product.k

    def _add(self, row: int, amounts: Mapping[str, int], times: int = 1) -> None:
        for column, amount in amounts.items():
            self._table[column][row] += amount * times

    def _asked_in(self, chunk: Chunk) -> Array:
        """Bytes of loads, and of loads and atomics, of each block of a chunk."""
        if id(chunk) not in self._asked:
            self._asked[id(chunk)] = chunk, np.zeros((2, chunk.blocks.size), np.int64)
        return self._asked[id(chunk)][1]

    def _ask(self, access: Access) -> None:
        """The bytes of an access for each of its blocks."""
        chunk, lanes = access.chunk, access.lanes
        asked = self._asked_in(chunk)
        if access.kind != "load":
            asked = asked[1:]
        if lanes is None:
            asked += chunk.lanes_per_block * access.size
        else:
            asked += lanes.sum(axis=1) * (chunk.lanes_per_block // lanes.shape[1] * access.size)

    def _hand_over(self, times: int, lanes: Array | None, chunk: Chunk) -> None:
        """So often the warps of a group, in each of its blocks, come to where one can wait for another."""
        if id(chunk) not in self._handed:
            self._handed[id(chunk)] = chunk, np.zeros(chunk.blocks.size, np.int64)
        handed = self._handed[id(chunk)][1]
        if lanes is None:
            handed += times * chunk.warps_per_block
        else:
            handed += times * _rows(lanes, chunk).any(axis=1).reshape(-1, chunk.warps_per_block).sum(axis=1)

    def _element(self, access: Access) -> None:
        """An element that each lane moves of a matrix; they come one after the other.

        PTX leaves open which lane moves which element. So the matrix counts as the fewest requests, in the
        order that suits memory best.
        """
        rows, lanes = _together(access.address, access.lanes, access.chunk)
        self._fragment.append(rows)
        registers = access.instruction.operands[access.kind == "store"]
        words = len(registers.items) if isinstance(registers, Vector) else 1
        if len(self._fragment) < words * max(patterns.WORD // access.size, 1):
            return
        moved = np.concatenate(self._fragment, axis=1)
        self._fragment.clear()
        if lanes is not None:
            moved = moved[lanes.any(axis=1)]
        count, size = patterns.matrix(moved, access.size, access.space == "shared")
        what = "wavefronts" if access.space == "shared" else "sectors"
        times = _times(len(rows), access.chunk)
        for column, amount in (
            ("requests", int((-(-size // WIDEST)).sum())),
            ("bytes", int(size.sum())),
            (what, int(count.sum())),
            (
                f"ideal_{what}",
                int((-(-size // (128 if access.space == "shared" else patterns.SECTOR))).sum()),
            ),
        ):
            self._table[column][self._row(access)] += amount * times

    def _row(self, access: Access) -> int:
        """The row of an access: its instruction's, unless its address was a generic one of another space."""
        if access.space == "cluster" and (access.index, "cluster") not in self._rows:
            self._rows[access.index, "cluster"] = len(self._table["requests"])
            self._table = {column: np.append(row, 0) for column, row in self._table.items()}
        return self._rows.get((access.index, access.space), access.index)

    def _cost(self, access: Access) -> tuple[int, int]:
        """Sectors or wavefronts of an access, and at best.

        Blocks and loops repeat the same few patterns, each time some bytes further on. By whole sectors of
        global memory or whole words elsewhere, that changes no count.
        """
        address, lanes = access.address, access.lanes
        if max(address.size, 0 if lanes is None else lanes.size) > REMEMBERED_LANES:
            asked, ideal, rows = _analysed(access)
        else:
            unit = patterns.WORD if access.space in ANALYSES else patterns.SECTOR
            moved = address - address[0, 0] // unit * unit
            who = None if lanes is None else (lanes.shape, lanes.tobytes())
            key = access.space, access.size, moved.shape, moved.tobytes(), who
            known = self._costs.get(key)
            if known is None:
                if len(self._costs) == REMEMBERED:
                    self._costs.clear()
                known = self._costs[key] = _analysed(access)
            asked, ideal, rows = known
        times = _times(rows, access.chunk)
        return asked * times, ideal * times

    def end(self) -> None:
        for known in self._again.values():
            self._add(known.row, known.amounts, known.times)
        table = self._table
        for (first, stop), (warps, threads) in self._passes.items():
            table["warps"][first:stop] += warps
            table["threads"][first:stop] += threads
        table["active"][:] = table["threads"]
        for index, lanes in self._guarded.items():
            table["active"][index] = lanes
        instructions = self._program.instructions
        own = len(instructions)
        for index, instruction in enumerate(instructions):
            if is_product(instruction):
                warpgroups = int(table["active"][index]) // THREADS
                read = warpgroups * bytes_read(instruction)
                table["bytes"][index] = read
                table["wavefronts"][index] = table["ideal_wavefronts"][index] = read // patterns.LINE
            elif held := tensor_registers(instruction):
                table["requests"][index] = table["warps"][index]
                table["bytes"][index] = 4 * held * table["active"][index]
        table["flops"][:own] += (np.array(self._program.flops) * table["active"][:own]).astype(np.int64)
        kinds = [classify(i) for i in instructions]
        table["strong"][:own] = np.array([is_strong(i) for i in instructions], bool) * table["warps"][:own]
        self.counts = Counts(
            self._program.display_name,
            (*instructions, *(instructions[index] for index, _ in self._rows)),
            (*kinds, *(("store" if is_copy(instructions[i]) else kinds[i][0], s) for i, s in self._rows)),
            table,
            self._grid,
            self._block,
            most_loaded=max((int(asked[0].max()) for _, asked in self._asked.values()), default=0),
            most_asked=max((int(asked[1].max()) for _, asked in self._asked.values()), default=0),
            most_handed=max((int(handed.max()) for _, handed in self._handed.values()), default=0),
        )

    def _size(self, lanes: Array | None, chunk: Chunk) -> tuple[int, int]:
        """(warps, lanes) of a group. Most groups come many times in a row."""
        last, blocks, warps, threads = self._last
        if lanes is last and blocks == chunk.blocks.size:
            return warps, threads
        if lanes is None:
            warps, threads = (
                chunk.blocks.size * chunk.warps_per_block,
                chunk.blocks.size * chunk.lanes_per_block,
            )
        else:
            rows: Array = _rows(lanes, chunk)
            times = chunk.blocks.size if len(rows) == chunk.warps_per_block else 1
            warps = int(np.count_nonzero(rows.any(axis=1))) * times
            threads = int(np.count_nonzero(rows)) * times
        self._last = (lanes, chunk.blocks.size, warps, threads)
        return warps, threads


def _count(lanes: Array, chunk: Chunk) -> int:
    return int(np.count_nonzero(lanes)) * (chunk.blocks.size * chunk.lanes_per_block // lanes.size)


def _rows(x: Array, chunk: Chunk) -> Array:
    """(b, t) → (b · warps, 32): a row a warp; b stays 1 where all blocks are alike."""
    return widened(x, (x.shape[0], chunk.lanes_per_block)).reshape(-1, 32)


def _together(x: Array, lanes: Array | None, chunk: Chunk) -> tuple[Array, Array | None]:
    """Values and lanes as `_rows`, as many of them for both."""
    blocks = x.shape[0] if lanes is None else max(x.shape[0], lanes.shape[0])
    shape = (blocks, chunk.lanes_per_block)
    rows = widened(x, shape).reshape(-1, 32)
    return rows, None if lanes is None else widened(lanes, shape).reshape(-1, 32)


def _times(rows: int, chunk: Chunk) -> int:
    """How many warps of the chunk each row stands for."""
    return chunk.blocks.size * chunk.warps_per_block // rows


def _analysed(access: Access) -> tuple[int, int, int]:
    """Sectors or wavefronts of all rows, those at best, and how many rows there are."""
    rows, lanes = _together(access.address, access.lanes, access.chunk)
    analysis = ANALYSES.get(access.space, patterns.sectors)
    if analysis in COMPILED and are_accesses_worth_compiling(rows.size):
        return *COMPILED[analysis](rows, access.size, lanes), len(rows)
    asked, ideal = analysis(rows, access.size, lanes)
    return int(asked.sum()), int(ideal.sum()), len(rows)
