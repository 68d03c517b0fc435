"""``tcgen05``: Tensor Memory, and the products that Blackwell's tensor cores leave there.

One thread asks for a product; a commit makes an mbarrier tell when it and all before it are done. Until
somebody waits at that mbarrier, nothing has been done: operands in shared memory are read at the wait, and
Tensor Memory holds until then what it held before. A kernel that overwrites an operand or reads a sum too
early goes wrong here every time, and not only now and then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpulab.simulator.ptx import Address, Immediate, Operand, Vector

from . import accesses, atomics
from .clusters import locate
from .errors import OutOfBounds, WrongBarrier, WrongMatrix, WrongTensorMemory
from .executable import Step
from .mbarrier_words import NONE, after, parity, pending
from .memory import SHARED_WINDOW
from .opcodes import Opcode
from .operands import Decoder
from .program import Source
from .run import Run
from .steps import Builder
from .tensor_core_descriptors import (
    DEPTH,
    ROW_BYTES,
    SCALED,
    TYPES,
    ProductDescriptor,
    WrongDescriptorValue,
    decode_product,
    decode_shared,
    operand_addresses,
)
from .tensor_core_products import decode, decode_scales, itemsize, multiply_accumulate, result_lanes
from .tensor_memory import COLUMNS, FEWEST, LANE_BIT, LANES, SHAPES, TensorMemory, allocate, fresh, repeated
from .tensor_work import Signal, Task, TensorWork
from .types import BOOL, I32, I64, U32
from .warps import WARP

Array = np.ndarray

COLUMN = (1 << LANE_BIT) - 1
WARPS = 4  # of a warpgroup: each reaches a quarter of the lanes


def memory_of(run: Run) -> TensorMemory:
    """The Tensor Memory of a chunk, which begins with the first instruction that uses it."""
    if run.tensor_memory is None:
        run.tensor_memory = fresh(run.shape[0], run.frame.garbage)
    return run.tensor_memory


def _group(op: Opcode) -> int:
    """1 or 2: how many blocks take part."""
    return 2 if "cta_group::2" in op.instruction.parts else 1


def _leaders(run: Run) -> list[tuple[int, int]]:
    """(row, first lane) of each warp that has lanes in the group."""
    warps = run.by_warp(run.mask()).any(axis=-1)
    return [(int(row), int(warp) * WARP) for row, warp in np.argwhere(warps)]


def _only(run: Run, row: int, lane: int) -> Array:
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
            **run.blame(index, _only(run, row, lane)),
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
            blame = run.blame(index, _only(run, row, lane))
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
                    **run.blame(index, _only(run, row, lane)),
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
        **run.blame(at, _only(run, row, 0)),
        what=f"belongs to a block that returned and still holds {int((memory.owner[row] >= 0).sum())} columns "
        "of Tensor Memory.",
        advice="One warp must free them (tcgen05.dealloc) when all are done with them: the next block on this "
        "SM waits for them.",
    )


# ---- between registers and Tensor Memory ---------------------------------------------------------


class Reach(NamedTuple):
    """Places in Tensor Memory (B, T), by register: the lane, and the column of each."""

    lane: list[Array]
    column: list[Array]


def _reach(run: Run, index: int, address: Array, lanes: Array, columns: Array, did: str) -> Reach:
    """Where the registers of each thread are. `lanes` and `columns` (32, registers) are relative to the
    address. Raises WrongTensorMemory."""
    memory = memory_of(run)
    address = np.broadcast_to(address, run.shape)
    mask = run.mask()
    thread = np.arange(run.shape[1])
    quarter = thread // WARP % WARPS * WARP
    first = address >> LANE_BIT
    high = int(lanes.max()) + 1
    wrong = mask & ((first < quarter) | (first + high > quarter + WARP))
    if wrong.any():
        row, lane = np.argwhere(wrong)[0]
        raise WrongTensorMemory(
            **run.blame(index, wrong),
            what=f"{did} lanes {int(first[row, lane])} to {int(first[row, lane]) + high - 1} of Tensor Memory, "
            f"but its warp reaches lanes {quarter[lane]} to {quarter[lane] + WARP - 1}.",
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
            f"{_allocated(memory, int(row))}.",
            advice="Is the address the one that tcgen05.alloc wrote, and are enough columns allocated?",
        )
    start, first = np.where(mask, start, 0), np.where(mask, first, 0)
    own = thread % WARP
    return Reach(
        [first + lanes[own, i] for i in range(lanes.shape[1])],
        [start + columns[own, i] for i in range(lanes.shape[1])],
    )


def _allocated(memory: TensorMemory, row: int) -> str:
    columns = np.flatnonzero(memory.owner[row] >= 0)
    if not columns.size:
        return "but its block has allocated none"
    return f"but its block has allocated {columns.size}, between {columns[0]} and {columns[-1]}"


def _moved(decoder: Decoder, op: Opcode, registers: Operand) -> tuple[tuple[Operand, ...], Array, Array, bool]:
    """(registers, lanes, columns, whether two halves of 16 bits share a register) of ``ld`` or ``st``."""
    parts = op.instruction.parts
    name = next((part for part in parts if part in SHAPES), None)
    times = next((int(part[1:]) for part in parts if part.startswith("x") and part[1:].isdigit()), 0)
    if name is None or not times or "red" in parts:
        raise decoder.unsupported(op, "The simulator moves the shapes " + ", ".join(SHAPES) + ".")
    packs = "pack::16b" in parts or "unpack::16b" in parts
    shape = repeated(name, times)
    items = registers.items if isinstance(registers, Vector) else (registers,)
    expected = shape.lane.shape[1] // (2 if packs else 1)
    if len(items) != expected:
        raise decoder.unsupported(op, f"It takes {expected} registers, not {len(items)}.")
    return items, shape.lane, shape.column, packs


def _load(decoder: Decoder, op: Opcode, index: int) -> Step:
    target, source = op.instruction.operands
    items, lanes, columns, packs = _moved(decoder, op, target)
    slots = [decoder.destination(item) for item in items]
    address = decoder.address(source)

    def step(run: Run) -> None:
        _whole_warps(run, index)
        place = _reach(run, index, address(run.registers), lanes, columns, "reads")
        words = memory_of(run).words
        values = [words[run.block_rows, lane, column] for lane, column in zip(*place, strict=True)]
        if packs:
            pairs = zip(values[::2], values[1::2], strict=True)
            values = [low & np.uint32(0xFFFF) | high << np.uint32(16) for low, high in pairs]
        run.hand_out(slots, [value.view(np.int32) for value in values])

    return step


def _store(decoder: Decoder, op: Opcode, index: int) -> Step:
    target, source = op.instruction.operands
    items, lanes, columns, packs = _moved(decoder, op, source)
    sources = [decoder.source(item, I32) for item in items]
    address = decoder.address(target)

    def step(run: Run) -> None:
        _whole_warps(run, index)
        place = _reach(run, index, address(run.registers), lanes, columns, "writes")
        words, mask = memory_of(run).words, run.mask()
        values = [np.broadcast_to(s.value(run.registers), run.shape).view(np.uint32) for s in sources]
        if packs:
            values = [half for x in values for half in (x & np.uint32(0xFFFF), x >> np.uint32(16))]
        rows = np.broadcast_to(run.block_rows, run.shape)[mask]
        for value, lane, column in zip(values, *place, strict=True):
            words[rows, lane[mask], column[mask]] = value[mask]

    return step


# ---- what is asked for ---------------------------------------------------------------------------


def _ask(run: Run, row: int, lane: int, do: Callable[[], None] | None, signal: Signal | None = None) -> None:
    if run.tensor_work is None:
        run.tensor_work = TensorWork()
    run.tensor_work.tasks.append(Task(row, lane, do, signal))


def _blocks(run: Run, index: int, row: int, lane: int, group: int) -> list[int]:
    """The rows of the blocks that take part in what a thread asks for: its own, or the pair's."""
    if group == 1:
        return [row]
    rank = int(run.ranks[row, 0])
    if run.cluster_size % 2 or rank % 2:
        why = (
            f"a cluster of {run.cluster_size} block{'s' if run.cluster_size > 1 else ''} has no pairs"
            if run.cluster_size % 2
            else f"it is in block {rank} of its cluster, the second of a pair"
        )
        raise WrongMatrix(
            **run.blame(index, _only(run, row, lane)),
            what=f"asks the tensor cores of a pair of blocks for something (cta_group::2), but {why}.",
            advice="Launch clusters of an even number of blocks, and let the even one of each pair ask.",
        )
    return [row, row + 1]


def _asks(run: Run) -> list[tuple[int, int]]:
    """(row, lane) of each thread in the group, each of which asks once."""
    return [(int(row), int(lane)) for row, lane in np.argwhere(run.mask())]


class Given(NamedTuple):
    """Sources of a value that each thread has of its own."""

    source: Source
    mask: int

    def of(self, run: Run, row: int, lane: int) -> int:
        value = self.source.value(run.registers)
        return int(np.broadcast_to(value, run.shape)[row, lane]) & self.mask


def _word(decoder: Decoder, operand: Operand, dtype: np.dtype) -> Given:
    return Given(decoder.source(operand, dtype), (1 << 8 * dtype.itemsize) - 1)


def _column_of(decoder: Decoder, operand: Operand) -> Callable[[Run, int, int], int]:
    address = decoder.address(operand)
    return lambda run, row, lane: int(np.broadcast_to(address(run.registers), run.shape)[row, lane])


def _commit(decoder: Decoder, op: Opcode, index: int) -> Step:
    parts = op.instruction.parts
    operand, *more = op.instruction.operands
    address = decoder.address(operand)
    start = 0 if any(part.startswith("shared::cluster") for part in parts) else SHARED_WINDOW
    mask = _word(decoder, more[0], np.dtype(np.uint16)) if more else None

    def step(run: Run) -> None:
        place = address(run.registers) - start
        offsets, owners = (np.broadcast_to(x, run.shape) for x in locate(run, index, place))
        for row, lane in _asks(run):
            rows = np.array([owners[row, lane]])
            if mask is not None:
                chosen = mask.of(run, row, lane)
                ranks = np.flatnonzero(chosen >> np.arange(16) & 1)
                if not ranks.size or ranks[-1] >= run.cluster_size:
                    raise OutOfBounds(
                        **run.blame(index, _only(run, row, lane)),
                        what=f"commits to the blocks {chosen:#b} of its cluster (a bit for each), which has "
                        f"{run.cluster_size} blocks.",
                        advice="The mask has a bit for each block of the cluster, from rank 0 on.",
                    )
                rows = row - int(run.ranks[row, 0]) + ranks
            signal = Signal(int(offsets[row, lane]), rows)
            _check_barriers(run, index, row, lane, signal)
            _ask(run, row, lane, None, signal)

    return step


def _check_barriers(run: Run, index: int, row: int, lane: int, signal: Signal) -> None:
    offset = signal.offset
    if offset % 8 or not 0 <= offset <= run.shared_bytes - 8:
        raise OutOfBounds(
            **run.blame(index, _only(run, row, lane)),
            what=f"commits to an mbarrier at byte {offset} of shared memory; the block has {run.shared_bytes:,}.",
            advice="Is the address the one that mbarrier.init got?",
        )
    if np.isin(run.shared.view(I64)[signal.rows, offset // 8], NONE).any():
        raise WrongBarrier(
            **run.blame(index, _only(run, row, lane)),
            what="commits to an mbarrier that is not initialised.",
            advice="One thread initialises it, before anybody commits to it.",
        )


def look(run: Run, row: Array, address: Array) -> bool:
    """Somebody looks at the mbarriers at `address` of the blocks in `row`, both (n,): what was committed to
    them is done, as much as it takes to end the phase. Whether there was anything."""
    work = run.tensor_work
    if work is None or not work.tasks:
        return False
    looked = {(int(r), int(a)) for r, a in zip(row, address, strict=True)}
    words = run.shared.view(I64)
    phases = {place: parity(words[place[0], place[1] // 8]) for place in looked}
    done = False
    for task in [task for task in work.tasks if task.signal is not None]:
        signal = task.signal
        assert signal is not None
        places = {(int(r), signal.offset) for r in signal.rows} & looked
        if any(parity(words[r, a // 8]) == phases[r, a] for r, a in places):
            _do_up_to(run, work, task)
            done = True
    return done


def _do_up_to(run: Run, work: TensorWork, last: Task) -> None:
    """All that the thread of a commit asked for before it, then its arrivals."""
    rest = []
    over = False
    for task in work.tasks:
        if over or (task.row, task.lane) != (last.row, last.lane):
            rest.append(task)
            continue
        over = task is last
        if task.do is not None:
            task.do()
        if task.signal is not None:
            _arrive(run, task.signal)
    work.tasks = rest
    run.changed()


def _arrive(run: Run, signal: Signal) -> None:
    view = run.shared.view(I64)
    places = signal.rows * view.shape[1] + signal.offset // 8
    one, zero = np.ones(places.size, np.int64), np.zeros(places.size, np.int64)
    atomics.apply(after, view.reshape(-1), places, (one, zero, zero))


# ---- products ------------------------------------------------------------------------------------


class Multiply(NamedTuple):
    """A ``tcgen05.mma`` without what its registers hold."""

    index: int
    kind: str
    group: int
    d: Callable[[Run, int, int], int]
    a: Given | Callable[[Run, int, int], int]  # a descriptor, or an address of Tensor Memory
    b: Given
    descriptor: Given
    disabled: tuple[Given, ...]
    adds: Given
    shift: int
    scales: tuple[Callable[[Run, int, int], int], ...]
    step: int  # numbers along k that share a scale


def _multiply(decoder: Decoder, op: Opcode, index: int) -> Step:
    parts = op.instruction.parts
    kind = next((part[6:] for part in parts if part.startswith("kind::")), "")
    if kind not in TYPES or {"sp", "ws", "ashift"} & set(parts):
        raise decoder.unsupported(op, "Sparse, weight-stationary and shifted products are not simulated.")
    d, a, b, descriptor, *rest = op.instruction.operands
    scales: tuple[Callable[[Run, int, int], int], ...] = ()
    if kind in SCALED:
        scales = tuple(_column_of(decoder, rest.pop(0)) for _ in range(2))
    disabled: tuple[Given, ...] = ()
    if rest and isinstance(rest[0], Vector):
        disabled = tuple(_word(decoder, item, U32) for item in rest.pop(0).items)
    adds = Given(decoder.source(rest.pop(0), BOOL), 1)
    shift = int(rest[0].value) if rest and isinstance(rest[0], Immediate) else 0
    multiply = Multiply(
        index,
        kind,
        _group(op),
        _column_of(decoder, d),
        _column_of(decoder, a) if isinstance(a, Address) else _word(decoder, a, I64),
        _word(decoder, b, I64),
        _word(decoder, descriptor, U32),
        disabled,
        adds,
        shift,
        scales,
        _numbers_per_scale(kind, parts),
    )

    def step(run: Run) -> None:
        for row, lane in _asks(run):
            _ask_for_product(run, multiply, row, lane)

    return step


def _numbers_per_scale(kind: str, parts: tuple[str, ...]) -> int:
    if "block16" in parts or "scale_vec::4X" in parts:
        return 16
    return 32 if kind in SCALED else 0


def _ask_for_product(run: Run, multiply: Multiply, row: int, lane: int) -> None:
    rows = _blocks(run, multiply.index, row, lane, multiply.group)
    blame = run.blame(multiply.index, _only(run, row, lane))
    word = multiply.descriptor.of(run, row, lane)
    try:
        product = decode_product(word, multiply.kind, multiply.group)
    except WrongDescriptorValue as error:
        raise WrongMatrix(
            **blame, what=f"gives the instruction descriptor {word:#010x}, which is wrong.", advice=str(error)
        ) from None
    if product.sparse:
        raise WrongMatrix(
            **blame, what="asks for a sparse product with an instruction for dense ones.", advice="Use .sp."
        )
    d = multiply.d(run, row, lane)
    adds = bool(multiply.adds.of(run, row, lane))
    a = multiply.a.of(run, row, lane) if isinstance(multiply.a, Given) else multiply.a(run, row, lane)
    b = multiply.b.of(run, row, lane)
    scales = tuple(scale(run, row, lane) for scale in multiply.scales)
    off = [given.of(run, row, lane) for given in multiply.disabled]
    height, half = product.m // multiply.group, product.n // multiply.group

    def wrong(error: Exception) -> WrongMatrix:
        return WrongMatrix(
            **blame, what="names an operand of a matrix product that cannot be.", advice=str(error)
        )

    def do() -> None:
        try:
            b_all = np.concatenate(
                [_shared(run, r, b, half, product.b_type, product.k, product.k_major[1]) for r in rows]
            )
            if product.negates[1]:
                b_all = -b_all
            if scales:
                b_all = b_all * _scales(run, rows[0], scales[1], product.n, product, multiply.step, product.scale_b)
            for place, r in enumerate(rows):
                if isinstance(multiply.a, Given):
                    left = _shared(run, r, a, height, product.a_type, product.k, product.k_major[0])
                else:
                    left = _held(run, r, a, height, product)
                if product.negates[0]:
                    left = -left
                if scales:
                    left = left * _scales(run, r, scales[0], height, product, multiply.step, product.scale_a)
                part = off[place * 4 : place * 4 + 4]
                _accumulate(run, r, d, left, b_all, product, adds, multiply, part)
        except WrongDescriptorValue as error:
            raise wrong(error) from None

    for hear in run.on_tensor_product:
        hear(multiply.index, row, product.m, product.n, product.k, run.chunk)
    _check_result(run, multiply, rows, d, product, blame)
    _ask(run, row, lane, do)


def _check_result(run, multiply, rows, d, product, blame) -> None:  # type: ignore[no-untyped-def]
    memory = memory_of(run)
    _, columns = result_lanes(product.m, product.n, multiply.group)
    first, last = d & COLUMN, (d & COLUMN) + int(columns.max())
    for row in rows:
        if last >= COLUMNS or (memory.owner[row, first : last + 1] < 0).any():
            raise WrongTensorMemory(
                **blame,
                what=f"adds a product to columns {first} to {last} of Tensor Memory, {_allocated(memory, row)}.",
                advice="D takes a column for each of its columns: allocate as many.",
            )


def _shared(run: Run, row: int, word: int, mn: int, type_: str, k: int, k_major: bool) -> Array:
    """An operand (mn, k) in shared memory of one block, as float64. Raises WrongDescriptorValue."""
    size = itemsize(type_)
    packed = 2 if type_ == "e2m1" else 1
    addresses = operand_addresses(decode_shared(word), mn, k // packed * size, size, k_major)
    end = int(addresses.max()) + size
    if end > run.shared_bytes:
        raise WrongDescriptorValue(
            f"The operand reaches up to byte {end:,} of shared memory, but the block has {run.shared_bytes:,}. "
            "Check the start address and the two offsets, all in units of 16 bytes."
        )
    octets = run.shared[row][addresses[..., None] + np.arange(size)]
    return decode(octets.reshape(mn, -1), type_)


def _held(run: Run, row: int, address: int, height: int, product: ProductDescriptor) -> Array:
    """An A (height, k) in Tensor Memory: each row in its lane, elements packed into words."""
    words = memory_of(run).words[row]
    lanes, _ = result_lanes(product.m, product.n, 1 if height == product.m else 2)
    first = address & COLUMN
    count = product.k * itemsize(product.a_type) // 4
    found = np.ascontiguousarray(words[lanes[:, 0], first : first + count])
    return decode(found.view(np.uint8), product.a_type)


def _scales(
    run: Run, row: int, address: int, mn: int, product: ProductDescriptor, step: int, byte: int
) -> Array:
    """The scale of each element of an operand (mn, k).

    The scales of row r are in lane r mod 32 and column r // 32, a byte for each block along k.
    """
    words = memory_of(run).words[row]
    rows = np.arange(mn)
    first = address & COLUMN
    found = np.ascontiguousarray(words[rows % WARP, first + rows // WARP]).view(np.uint8).reshape(mn, 4)
    blocks = product.k // step
    return decode_scales(found[:, byte : byte + blocks], product.scale_type).repeat(step, axis=1)


def _accumulate(
    run: Run,
    row: int,
    d: int,
    a: Array,
    b: Array,
    product: ProductDescriptor,
    adds: bool,
    multiply: Multiply,
    disabled: list[int],
) -> None:
    lanes, columns = result_lanes(product.m, product.n, multiply.group)
    columns = columns + (d & COLUMN)
    words = memory_of(run).words[row]
    held = words[lanes, columns]
    if product.d_type == "f16":
        before = held.astype(np.uint16).view(np.float16).astype(np.float64)
    elif product.d_type == "s32":
        before = held.view(np.int32).astype(np.float64)
    else:
        before = held.view(np.float32).astype(np.float64)
    c = before * 2.0**-multiply.shift if adds else np.zeros_like(before)
    result = multiply_accumulate(a, b, c, product)
    new = result.view(np.uint16).astype(np.uint32) if product.d_type == "f16" else result.view(np.uint32)
    if any(disabled):
        bits = np.array(disabled, np.uint32)
        off = (bits[lanes // 32] >> (lanes % 32).astype(np.uint32) & 1).astype(bool)
        new = np.where(off, held, new)
    words[lanes, columns] = new


# ---- copies --------------------------------------------------------------------------------------

# (rows of shared memory, bytes of a row, lanes that each row reaches) by the shape's name.
COPIES = {
    "32x128b.warpx4": (32, 16, np.arange(32)[:, None] + 32 * np.arange(4)),
    "128x256b": (128, 32, np.arange(128)[:, None]),
    "128x128b": (128, 16, np.arange(128)[:, None]),
}


def _copy(decoder: Decoder, op: Opcode, index: int) -> Step:
    opcode = op.instruction.opcode
    name = next((name for name in COPIES if opcode.endswith(name)), None)
    if name is None:
        raise decoder.unsupported(op, "The simulator copies the shapes " + ", ".join(COPIES) + ".")
    height, width, lanes = COPIES[name]
    target, source = op.instruction.operands
    column, word = _column_of(decoder, target), _word(decoder, source, I64)
    group = _group(op)

    def step(run: Run) -> None:
        for row, lane in _asks(run):
            rows = _blocks(run, index, row, lane, group)
            first, descriptor = column(run, row, lane), word.of(run, row, lane)
            blame = run.blame(index, _only(run, row, lane))

            def do(rows=rows, first=first, descriptor=descriptor, blame=blame) -> None:  # type: ignore[no-untyped-def]
                for r in rows:
                    try:
                        octets = _bytes(run, r, descriptor, height, width)
                    except WrongDescriptorValue as error:
                        raise WrongMatrix(
                            **blame, what="copies from a place that cannot be.", advice=str(error)
                        ) from None
                    words = np.ascontiguousarray(octets).view(np.uint32)  # (height, width / 4)
                    columns = (first & COLUMN) + np.arange(width // 4)
                    memory_of(run).words[r][lanes[:, :, None], columns] = words[:, None, :]

            _ask(run, row, lane, do)

    return step


def _bytes(run: Run, row: int, descriptor: int, height: int, width: int) -> Array:
    addresses = operand_addresses(decode_shared(descriptor), height, width, 1, True)
    if int(addresses.max()) >= run.shared_bytes:
        raise WrongDescriptorValue(
            f"The source reaches up to byte {int(addresses.max()) + 1:,} of shared memory, but the block has "
            f"{run.shared_bytes:,}."
        )
    return run.shared[row][addresses]


def _in_order(decoder: Decoder, op: Opcode, index: int) -> None:
    """``fence`` and ``wait``: what threads do themselves with Tensor Memory is done at once here."""


KINDS: dict[str, Builder] = {
    "alloc": _allocate,
    "dealloc": _free,
    "relinquish_alloc_permit": _relinquish,
    "ld": _load,
    "st": _store,
    "mma": _multiply,
    "cp": _copy,
    "commit": _commit,
    "fence::before_thread_sync": _in_order,
    "fence::after_thread_sync": _in_order,
    "wait::ld": _in_order,
    "wait::st": _in_order,
}


def _tcgen05(decoder: Decoder, op: Opcode, index: int) -> Step | None:
    build = KINDS.get(op.instruction.parts[1])
    if build is None:
        raise decoder.unsupported(op)
    return build(decoder, op, index)


BUILDERS = {"tcgen05": _tcgen05}
