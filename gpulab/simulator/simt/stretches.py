"""Stretches of a program: loads from shared memory and float arithmetic in a row, made in one pass.

A step works on whole arrays, so between two steps every result goes through memory. The inner loop of a
tiled product is nothing but loads from shared memory and multiply-adds, and spends its time there. A stretch
is such a run of instructions as a small program of its own. Compiled code takes a few lanes at a time through
all of it, with results in a scratch pad that fits the cache. Registers that are read nowhere else are never
written.

A stretch makes what its steps would make, bit for bit. Where anything is unusual (an address that has not
been checked yet, lanes whose registers must be kept, an observer that wants to see values), the steps run one
after the other. Whether it pays is decided as for `moves`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from gpulab.simulator.ptx import Instruction, Register, Vector, reads

from .compiled import are_accesses_worth_compiling, kept
from .events import Access
from .executable import Step
from .lines import (
    ADD,
    APART,
    FUSED,
    LOAD,
    MOVE,
    MULTIPLY,
    NEXT,
    OCTET,
    READ,
    SAME,
    SUBTRACT,
    TILE,
    WRITE,
)
from .memory import host_address
from .opcodes import Opcode, is_volatile, opcode
from .operands import Decoder
from .operations import operation
from .run import Run

Array = np.ndarray

FEWEST = 6  # instructions; fewer than these stay steps
PAD = 64 << 10  # bytes of the scratch pad at most
SHARED = ("shared", "shared::cta")

# Instructions that a line can make.
ARITHMETIC = {"mov": MOVE, "add": ADD, "sub": SUBTRACT, "mul": MULTIPLY, "fma": FUSED}
FLOATS: dict[str, np.dtype] = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}


class Item(NamedTuple):
    """The instruction `at` this index: what it does, to and from which slots, and a load's address."""

    at: int
    step: Step
    code: int
    dtype: np.dtype
    results: tuple[int, ...]
    sources: tuple[int, ...] = ()
    address: Callable[[list[Array]], Array] | None = None


class Load(NamedTuple):
    """A load, the instruction `at` this index, with `size` bytes for each lane."""

    at: int
    instruction: Instruction
    address: Callable[[list[Array]], Array]
    size: int


class Found(NamedTuple):
    """What is known about the loads of a stretch as long as their addresses are the same arrays: the place of
    each lane's element, (loads, T); whether octets of lanes want one element, neighbours, or neither; and
    what observers hear."""

    addresses: list[Array]
    lanes: Array | None
    places: Array
    octets: Array
    accesses: list[Access]


def readers(decoder: Decoder, instructions: Sequence[Instruction]) -> dict[int, list[int]]:
    """The instructions that read each register slot."""
    found: dict[int, list[int]] = defaultdict(list)
    for index, instruction in enumerate(instructions):
        for name in reads(instruction):
            found[decoder.slot(name)].append(index)
    return found


def fuse(
    decoder: Decoder,
    instructions: Sequence[Instruction],
    steps: Iterable[tuple[int, Step]],
    readers: dict[int, list[int]],
) -> list[Step]:
    """Steps that follow each other, with one step in the place of each stretch among them. `steps` come with
    the indices of their instructions."""
    made: list[Step] = []
    run: list[Item] = []

    def close() -> None:
        stretch = make(run, instructions, readers) if len(run) >= FEWEST else None
        made.extend([stretch] if stretch is not None else [item.step for item in run])
        run.clear()

    for index, step in steps:
        item = _item(decoder, opcode(instructions[index]), index, step)
        if run and (item is None or item.dtype != run[0].dtype or item.at != run[-1].at + 1):
            close()
        if item is None:
            made.append(step)
        else:
            run.append(item)
    close()
    return made


def _item(decoder: Decoder, op: Opcode, index: int, step: Step) -> Item | None:
    """The instruction as a part of a stretch; None if it cannot be one."""
    instruction = op.instruction
    if instruction.guard is not None or len(op.types) != 1:
        return None
    if op.name == "ld":
        return _load(decoder, op, index, step)
    dtype = FLOATS.get(op.type)
    if op.name not in ARITHMETIC or dtype is None or op.modifiers - {"rn"}:
        return None
    destination, *operands = instruction.operands
    if not isinstance(destination, Register) or destination.name in decoder.accumulators:
        return None
    if op.name == "mov" and not isinstance(operands[0], Register):
        return None
    sources = [decoder.source(each, dtype) for each in operands]
    slot = decoder.destination(destination)
    known = op.name == "mov" or operation(instruction) is not None
    if slot is None or not known or decoder.dtypes[slot] != dtype:
        return None
    if any(source.view is not None for source in sources):
        return None
    return Item(index, step, ARITHMETIC[op.name], dtype, (slot,), tuple(s.slot for s in sources))


def _load(decoder: Decoder, op: Opcode, index: int, step: Step) -> Item | None:
    destination, source = op.instruction.operands[:2]
    if is_volatile(op.instruction) or not any(part in SHARED for part in op.instruction.parts):
        return None
    items = destination.items if isinstance(destination, Vector) else (destination,)
    slots = [decoder.destination(each) for each in items if isinstance(each, Register)]
    if len(slots) < len(items) or any(slot is None for slot in slots):
        return None
    dtypes = {decoder.dtypes[slot] for slot in slots if slot is not None}
    dtype = dtypes.pop()
    if dtypes or dtype not in FLOATS.values() or op.type[1:] != str(8 * dtype.itemsize):
        return None
    results = tuple(slot for slot in slots if slot is not None)
    return Item(index, step, LOAD, dtype, results, (), decoder.address(source))


# ---- the little program --------------------------------------------------------------------------


class Line(NamedTuple):
    """`code` makes the value `result` (−1: none) from the values `sources`. A number says which load and
    which of its elements, or which input or output."""

    code: int
    result: int
    sources: tuple[int, ...] = ()
    number: int = 0
    element: int = 0


def make(
    items: Sequence[Item], instructions: Sequence[Instruction], readers: dict[int, list[int]]
) -> Stretch | None:
    """The stretch of these instructions; None if it needs too large a scratch pad."""
    inside = {item.at for item in items}
    current: dict[int, int] = {}  # the value that a slot holds now
    inputs: list[int] = []
    lines: list[Line] = []
    values = 0
    read_first = set()  # slots whose content from before is used: in a loop, that is what the last round left

    def new() -> int:
        nonlocal values
        values += 1
        return values - 1

    def value_of(slot: int) -> int:
        if slot not in current:
            current[slot] = new()
            read_first.add(slot)
            lines.append(Line(READ, current[slot], number=len(inputs)))
            inputs.append(slot)
        return current[slot]

    loads: list[Load] = []
    for item in items:
        if item.address is not None:
            for element, slot in enumerate(item.results):
                current[slot] = new()
                lines.append(Line(LOAD, current[slot], number=len(loads), element=element))
            size = item.dtype.itemsize * len(item.results)
            loads.append(Load(item.at, instructions[item.at], item.address, size))
            continue
        sources = tuple(value_of(slot) for slot in item.sources)
        current[item.results[0]] = new()
        lines.append(Line(item.code, current[item.results[0]], sources))
    written = dict.fromkeys(slot for item in items for slot in item.results)
    outputs = [
        slot for slot in written if slot in read_first or any(i not in inside for i in readers.get(slot, ()))
    ]
    last_of = {current[slot]: number for number, slot in enumerate(outputs)}
    in_order: list[Line] = []
    for line in lines:
        in_order.append(line)
        if line.code != READ and line.result in last_of:
            in_order.append(Line(WRITE, -1, (line.result,), number=last_of[line.result]))
    table, pads = _allocate(in_order)
    if pads * TILE * items[0].dtype.itemsize > PAD:
        return None
    return Stretch([item.step for item in items], items[0].dtype, table, pads, loads, inputs, outputs)


def _allocate(lines: Sequence[Line]) -> tuple[Array, int]:
    """The lines as rows (code, result, three more numbers), with places in the scratch pad for values, and
    how many places there are. A result never has the place of a source, so that loops may be vectorised."""
    last = {value: n for n, line in enumerate(lines) for value in (*line.sources, line.result)}
    place: dict[int, int] = {}
    free: list[int] = []
    places = 0
    table = np.zeros((len(lines), 5), np.int64)
    for n, line in enumerate(lines):
        if line.result >= 0:
            if not free:
                free.append(places)
                places += 1
            place[line.result] = free.pop()
        rest = [place[value] for value in line.sources]
        if line.code in (LOAD, READ, WRITE):
            rest += [line.number, line.element]
        table[n, 0], table[n, 1] = line.code, place.get(line.result, 0)
        table[n, 2 : 2 + len(rest)] = rest
        free += [place[value] for value in {*line.sources, line.result} if value >= 0 and last[value] == n]
    return table, places


class Stretch:
    """A step that makes many: the loads and the arithmetic of `steps`.

    `inputs` are the register slots that it reads and `outputs` those that it leaves a value in.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        dtype: np.dtype,
        lines: Array,
        pads: int,
        loads: Sequence[Load],
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> None:
        self._steps, self._dtype, self._lines, self._pads = steps, dtype, lines, pads
        self._loads, self._inputs, self._outputs = loads, inputs, outputs
        self._written = sum(1 << slot for slot in outputs)

    def __call__(self, run: Run) -> None:
        found = self._find(run)
        if found is None:
            for step in self._steps:
                step(run)
            return
        for access in found.accesses:
            for hear in run.on_access:
                hear(access)
        registers = run.registers
        given = [np.ascontiguousarray(registers[slot]) for slot in self._inputs]
        made = [np.empty(run.shape, self._dtype) for _ in self._outputs]
        rows = np.array([_way(array) for array in given], np.int64).reshape(-1, 3)
        pointers = np.array([host_address(array) for array in made], np.int64)
        pad = np.empty((self._pads, TILE), self._dtype)
        shared = run.shared.view(self._dtype)
        _sweep(self._dtype)(self._lines, found.places, found.octets, shared, rows, pointers, pad, *run.shape)
        for slot, value in zip(self._outputs, made, strict=True):
            registers[slot] = value

    def _find(self, run: Run) -> Found | None:
        """What is needed to make the stretch in one pass; None if its steps have to be made."""
        lanes = run.shape[0] * run.shape[1] * len(self._steps)
        if run.protected & self._written or run.shows_values or run.cluster_size > 1 or _is_copying(run):
            return None
        if not are_accesses_worth_compiling(lanes) or run.shape[1] % OCTET:
            return None
        addresses = [load.address(run.registers) for load in self._loads]
        found = run.stretches.get(self)
        if (
            found is not None
            and found.lanes is run.lanes
            and all(a is b for a, b in zip(addresses, found.addresses, strict=True))
        ):
            return found
        placed = [run.placed.get(load.at) for load in self._loads]
        for address, known in zip(addresses, placed, strict=True):
            if known is None or known[0] is not address or known[1] is not run.lanes:
                return None
        places = np.empty((len(addresses), run.shape[1]), np.int64)
        for row, known in zip(places, placed, strict=True):
            row[:] = known[2][0]  # type: ignore[index]
        accesses = [
            Access(load.at, load.instruction, "shared", "load", address, load.size, run.lanes, run.chunk)
            for load, address in zip(self._loads, addresses, strict=True)
        ]
        found = Found(addresses, run.lanes, places, _octets(places, self._dtype.itemsize), accesses)
        run.stretches[self] = found
        return found


def _is_copying(run: Run) -> bool:
    """Whether something is on its way to or from shared memory of which an observer wants to hear."""
    if not run.on_early:
        return False
    going = run.flights is not None and bool(run.flights.going)
    return going or (run.copies is not None and bool(run.copies.pending))


def _octets(places: Array, size: int) -> Array:
    """For each octet of lanes the byte of its first lane's element, and in two bits below whether all want
    that element, each the next one, or neither."""
    octets = places.reshape(len(places), places.shape[1] // OCTET, OCTET)
    first = octets[:, :, :1]
    same, following = (octets == first).all(axis=2), (octets == first + np.arange(OCTET)).all(axis=2)
    return first[:, :, 0] * size << 2 | np.where(same, SAME, np.where(following, NEXT, APART))


def _way(array: Array) -> tuple[int, int, int]:
    """Where an array broadcastable to (B, T) begins, and how many elements lie between rows and columns."""
    rows, columns = array.shape
    return host_address(array), columns if rows > 1 else 0, int(columns > 1)


@cache
def _sweep(dtype: np.dtype) -> Callable[..., None]:
    from .sweeps import sweep

    numbers, elements = "int64[:, ::1]", f"{dtype.name}[:, ::1]"
    shared = f"Array({dtype.name}, 2, 'C', readonly=True)"
    return kept(sweep, "void", *[numbers] * 3, shared, numbers, "int64[::1]", elements, "int64", "int64")
