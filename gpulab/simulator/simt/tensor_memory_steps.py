"""Tensor Memory in ``tcgen05``: its allocation, and what moves between it and registers."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import NamedTuple

import numpy as np

from gpulab.simulator.ptx import Immediate, Operand, Vector

from . import accesses, floats
from .errors import WrongTensorMemory
from .executable import Step
from .memory import SHARED_WINDOW
from .opcodes import Opcode
from .operands import Decoder
from .program import Source
from .run import Run
from .steps import Builder
from .tensor_memory import (
    COLUMN,
    COLUMNS,
    FEWEST,
    LANE_BIT,
    SHAPES,
    TensorMemory,
    allocate,
    fresh,
    in_pairs,
    repeated,
)
from .types import I32, U32
from .warps import WARP

Array = np.ndarray

REDUCED = ("32x32b", "16x32bx2")  # shapes of ``ld.red``, which B300 and later have
WARPS = 4  # of a warpgroup: each reaches a quarter of the lanes


def memory_of(run: Run) -> TensorMemory:
    """The Tensor Memory of a chunk, which begins with the first instruction that uses it."""
    if run.tensor_memory is None:
        run.tensor_memory = fresh(run.shape[0], run.frame.garbage)
    return run.tensor_memory


def _leaders(run: Run) -> list[tuple[int, int]]:
    """(row, first lane) of each warp that has lanes in the group."""
    warps = run.by_warp(run.mask()).any(axis=-1)
    return [(int(row), int(warp) * WARP) for row, warp in np.argwhere(warps)]


def only(run: Run, row: int, lane: int) -> Array:
    lanes = np.zeros(run.shape, bool)
    lanes[row, lane] = True
    return lanes


def _whole_warps(run: Run, index: int) -> None:
    """Raise WrongTensorMemory where only some threads of a warp run an instruction that all must run."""
    if run.lanes is None:
        return
    lanes = run.by_warp(run.mask())
    alive = run.by_warp(run.full(run.alive))
    partial = lanes.any(axis=-1, keepdims=True) & (lanes != alive)
    if partial.any():
        raise WrongTensorMemory(
            **run.blame(index, (lanes & partial.any(axis=-1, keepdims=True)).reshape(run.shape)),
            what="uses Tensor Memory while other threads of its warp do something else.",
            advice="All 32 threads of a warp must run this instruction together: branch for whole warps.",
        )


# ---- allocation ----------------------------------------------------------------------------------


def _count(run: Run, index: int, source: Source, row: int, lane: int) -> int:
    """A number of columns as an instruction gives it. Raises WrongTensorMemory where it cannot be."""
    count = int(np.broadcast_to(source.value(run.registers), run.shape)[row, lane])
    if not FEWEST <= count <= COLUMNS or count & (count - 1):
        raise WrongTensorMemory(
            **run.blame(index, only(run, row, lane)),
            what=f"names {count} columns of Tensor Memory.",
            advice="Allocations have 32, 64, 128, 256 or 512 columns.",
        )
    return count


def _allocate(decoder: Decoder, op: Opcode, index: int) -> Step:
    target, number = op.instruction.operands
    address, count = decoder.address(target), decoder.source(number, U32)
    generic = not any(part.startswith("shared") for part in op.instruction.parts)

    def step(run: Run) -> None:
        _whole_warps(run, index)
        memory = memory_of(run)
        found = np.zeros(run.shape, np.int32)
        writers = np.zeros(run.shape, bool)
        for row, lane in _leaders(run):
            columns = _count(run, index, count, row, lane)
            blame = run.blame(index, only(run, row, lane))
            if memory.closed[row]:
                raise WrongTensorMemory(
                    **blame,
                    what="allocates Tensor Memory although its block has given up the right to.",
                    advice="Allocate before tcgen05.relinquish_alloc_permit.",
                )
            first = allocate(memory, row, columns)
            if first is None:
                free = int((memory.owner[row] < 0).sum())
                raise WrongTensorMemory(
                    **blame,
                    what=f"asks for {columns} columns of Tensor Memory. Its block holds {COLUMNS - free} of "
                    f"{COLUMNS}, so it would wait until some are freed.",
                    advice="Free columns (tcgen05.dealloc) before asking for more, or ask for fewer.",
                )
            found[row, lane], writers[row, lane] = first, True
        place = address(run.registers) - (SHARED_WINDOW if generic else 0)
        with run.only(writers):
            accesses.store(run, index, "shared", place, [found])

    return step


def _free(decoder: Decoder, op: Opcode, index: int) -> Step:
    where, number = (decoder.source(operand, U32) for operand in op.instruction.operands)

    def step(run: Run) -> None:
        _whole_warps(run, index)
        memory = memory_of(run)
        for row, lane in _leaders(run):
            columns = _count(run, index, number, row, lane)
            address = int(np.broadcast_to(where.value(run.registers), run.shape)[row, lane])
            first = address & COLUMN
            owned = memory.owner[row] == first
            if address >> LANE_BIT or first >= COLUMNS or int(owned.sum()) != columns:
                held = int(owned.sum()) if first < COLUMNS else 0
                why = f"an allocation of {held} columns begins" if held else "no allocation begins"
                raise WrongTensorMemory(
                    **run.blame(index, only(run, row, lane)),
                    what=f"frees {columns} columns of Tensor Memory at address {address:#x}, where {why}.",
                    advice="Free once, and with the address and the number of columns of the allocation.",
                )
            memory.owner[row, owned] = -1

    return step


def _relinquish(decoder: Decoder, op: Opcode, index: int) -> Step:
    def step(run: Run) -> None:
        _whole_warps(run, index)
        memory_of(run).closed[[row for row, _ in _leaders(run)]] = True

    return step


def finish(run: Run) -> None:
    """All threads have returned. Raises WrongTensorMemory for a block that still holds Tensor Memory."""
    memory = run.tensor_memory
    if memory is None or not (memory.owner >= 0).any():
        return
    row = int((memory.owner >= 0).any(axis=1).argmax())
    at = next(i for i, x in enumerate(run.program.instructions) if x.parts[:2] == ("tcgen05", "alloc"))
    run.lanes = None
    raise WrongTensorMemory(
        **run.blame(at, only(run, row, 0)),
        what=f"belongs to a block that returned and still holds {int((memory.owner[row] >= 0).sum())} "
        "columns of Tensor Memory.",
        advice="One warp must free them (tcgen05.dealloc) when all are done with them: the next block on "
        "this SM waits for them.",
    )


# ---- between registers and Tensor Memory ---------------------------------------------------------


class Reach(NamedTuple):
    """Places in Tensor Memory (B, T), by register: the lane, and the column of each."""

    lane: list[Array]
    column: list[Array]


def _reach(run: Run, index: int, address: Array, lanes: Array, columns: Array, did: str) -> Reach:
    """Where the registers of each thread are. `lanes` and `columns` (32, registers) are relative to the
    address, whose lanes 0 to 31 mean those of the warp itself. Raises WrongTensorMemory."""
    memory = memory_of(run)
    address = np.broadcast_to(address, run.shape)
    mask = run.mask()
    thread = np.arange(run.shape[1])
    quarter = thread // WARP % WARPS * WARP
    first = address >> LANE_BIT
    # NVIDIA's own programs leave the warp out of the address (CuTe DSL's examples, DeepGEMM).
    first = np.where(first < WARP, first + quarter, first)
    high = int(lanes.max()) + 1
    wrong = mask & ((first < quarter) | (first + high > quarter + WARP))
    if wrong.any():
        row, lane = np.argwhere(wrong)[0]
        raise WrongTensorMemory(
            **run.blame(index, wrong),
            what=f"{did} lanes {int(first[row, lane])} to {int(first[row, lane]) + high - 1} of Tensor "
            f"Memory, but its warp reaches lanes {quarter[lane]} to {quarter[lane] + WARP - 1}.",
            advice="Warp i of a warpgroup reaches lanes 32·i to 32·i + 31: add 32·i << 16 to the address.",
        )
    start = address & COLUMN
    last = start + int(columns.max())
    rows = run.block_rows
    held = (memory.owner[rows, np.minimum(start, COLUMNS - 1)] >= 0) & (last < COLUMNS)
    held &= memory.owner[rows, np.minimum(last, COLUMNS - 1)] >= 0
    if (mask & ~held).any():
        row, lane = np.argwhere(mask & ~held)[0]
        raise WrongTensorMemory(
            **run.blame(index, ~held),
            what=f"{did} columns {int(start[row, lane])} to {int(last[row, lane])} of Tensor Memory, "
            f"{allocated(memory, int(row))}.",
            advice="Is the address the one that tcgen05.alloc wrote, and are enough columns allocated?",
        )
    for hear in run.on_tensor_memory:
        hear(index, run.lanes, start + int(columns.min()), last, run.chunk)
    start, first = np.where(mask, start, 0), np.where(mask, first, 0)
    own = thread % WARP
    return Reach(
        [first + lanes[own, i] for i in range(lanes.shape[1])],
        [start + columns[own, i] for i in range(lanes.shape[1])],
    )


def allocated(memory: TensorMemory, row: int) -> str:
    columns = np.flatnonzero(memory.owner[row] >= 0)
    if not columns.size:
        return "but its block has allocated none"
    return f"but its block has allocated {columns.size}, between {columns[0]} and {columns[-1]}"


class Move(NamedTuple):
    """What ``ld`` or ``st`` moves: registers, and their places as in `Shape`. With `packs`, a register holds
    the lower halves of two columns, so there are twice as many places."""

    address: Operand
    registers: tuple[Operand, ...]
    lane: Array
    column: Array
    packs: bool
    reduced: Operand | None = None  # of ``ld.red``: the register of the smallest or largest of all


def _moved(decoder: Decoder, op: Opcode) -> Move:
    parts = op.instruction.parts
    operands = list(op.instruction.operands)
    reduces = "red" in parts
    address = operands.pop(0 if "st" in parts else 1 + reduces)
    reduced = operands.pop(1) if reduces else None
    registers = operands.pop(-1 if "st" in parts else 0)
    split = int(operands[0].value) if operands and isinstance(operands[0], Immediate) else 0
    name = next((part for part in parts if part in SHAPES), None)
    times = next((int(part[1:]) for part in parts if part.startswith("x") and part[1:].isdigit()), 0)
    if name is None or not times or (reduces and (name not in REDUCED or times < 2)):
        known = " and ".join(REDUCED) + " with x2 and more" if reduces else ", ".join(SHAPES)
        raise decoder.unsupported(op, f"It moves the shapes {known}.")
    packs = "pack::16b" in parts or "unpack::16b" in parts
    shape = repeated(name, times, split)
    items = registers.items if isinstance(registers, Vector) else (registers,)
    expected = shape.lane.shape[1]
    if len(items) != expected:
        raise decoder.unsupported(op, f"It takes {expected} registers, not {len(items)}.")
    if packs:
        shape = in_pairs(shape, split)
    return Move(address, items, shape.lane, shape.column, packs, reduced)


def _load(decoder: Decoder, op: Opcode, index: int) -> Step:
    move = _moved(decoder, op)
    slots = [decoder.destination(item) for item in move.registers]
    address = decoder.address(move.address)
    chooses = _choice(op) if move.reduced is not None else None
    extra = None if move.reduced is None else decoder.destination(move.reduced)

    def step(run: Run) -> None:
        _whole_warps(run, index)
        place = _reach(run, index, address(run.registers), move.lane, move.column, "reads")
        words = memory_of(run).words
        values = [words[run.block_rows, lane, column] for lane, column in zip(*place, strict=True)]
        if move.packs:
            pairs = zip(values[::2], values[1::2], strict=True)
            values = [low & np.uint32(0xFFFF) | high << np.uint32(16) for low, high in pairs]
        found = [value.view(np.int32) for value in values]
        if chooses is not None:
            dtype, choose = chooses
            chosen = reduce(choose, [value.view(dtype) for value in values])
            run.hand_out([*slots, extra], [*found, np.ascontiguousarray(chosen).view(np.int32)])
        else:
            run.hand_out(slots, found)

    return step


def _choice(op: Opcode) -> tuple[np.dtype, Callable[[Array, Array], Array]]:
    """The type of ``ld.red``, and the function of two values that it takes of all that a thread loads."""
    dtype, lower = op.dtype, "min" in op.modifiers
    if dtype.kind != "f":
        return dtype, np.minimum if lower else np.maximum
    if "NaN" in op.modifiers:
        two = floats.minimum_nan if lower else floats.maximum_nan
    else:
        two = floats.minimum if lower else floats.maximum
    seen = np.abs if "abs" in op.modifiers else np.asarray
    return dtype, lambda a, b: floats.canonical(two(seen(a), seen(b)))


def _store(decoder: Decoder, op: Opcode, index: int) -> Step:
    move = _moved(decoder, op)
    sources = [decoder.source(item, I32) for item in move.registers]
    address = decoder.address(move.address)

    def step(run: Run) -> None:
        _whole_warps(run, index)
        place = _reach(run, index, address(run.registers), move.lane, move.column, "writes")
        words, mask = memory_of(run).words, run.mask()
        values = [np.broadcast_to(s.value(run.registers), run.shape).view(np.uint32) for s in sources]
        if move.packs:
            values = [half for x in values for half in (x & np.uint32(0xFFFF), x >> np.uint32(16))]
        rows = np.broadcast_to(run.block_rows, run.shape)[mask]
        for value, lane, column in zip(values, *place, strict=True):
            words[rows, lane[mask], column[mask]] = value[mask]

    return step


def _in_order(decoder: Decoder, op: Opcode, index: int) -> None:
    """``fence`` and ``wait``: what threads do themselves with Tensor Memory is done at once here."""


KINDS: dict[str, Builder] = {
    "alloc": _allocate,
    "dealloc": _free,
    "relinquish_alloc_permit": _relinquish,
    "ld": _load,
    "st": _store,
    "fence::before_thread_sync": _in_order,
    "fence::after_thread_sync": _in_order,
    "wait::ld": _in_order,
    "wait::st": _in_order,
}
