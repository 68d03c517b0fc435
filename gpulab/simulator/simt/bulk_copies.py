"""``cp.async.bulk`` and its like: one thread sends many bytes, and an engine moves them.

What is sent here are rows of bytes; `tensor_copies` sends boxes of tensors. `transfers` moves both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from gpulab.simulator.ptx import Immediate, Operand

from . import atomics, transfers
from .clusters import check_rows
from .errors import KernelFault, Misaligned, OutOfBounds, WrongBarrier
from .events import Transfer
from .executable import Step
from .flights import Flight, Reach
from .floats import maximum, minimum
from .mbarrier_words import NONE, parity
from .memory import Allocation
from .opcodes import Opcode
from .operands import Decoder
from .packed import from_bf16, to_bf16
from .run import RANK_BIT, Run
from .types import DTYPES, I64, U32, UNSIGNED

Array = np.ndarray

UNIT = 16  # bytes: what bulk copies count in
CHUNK = np.dtype("c16")  # 16 bytes that are moved as they are
ON_BFLOATS: dict[str, Callable[..., Array]] = {"add": np.add, "min": minimum, "max": maximum}


# ---- who sends what, from where to where ---------------------------------------------------------


@dataclass(slots=True)
class Senders:
    """The threads that send with one instruction: the n-th is `lane[n]` of the chunk's row `row[n]`."""

    run: Run
    index: int
    row: Array
    lane: Array

    def of(self, value: Array) -> Array:
        """What each of them has of something that is broadcastable to (B, T)."""
        return np.broadcast_to(value, self.run.shape)[self.row, self.lane]

    def take(self, chosen: Array) -> Senders:
        return Senders(self.run, self.index, self.row[chosen], self.lane[chosen])

    def refuse(self, bad: Array, kind: type[KernelFault], what: str, advice: str) -> None:
        """Raise a fault of this kind for the first of those that are `bad` (n,), if there are any."""
        if bad.any():
            run, where = self.run, np.zeros(self.run.shape, bool)
            where[self.row[bad], self.lane[bad]] = True
            raise kind(**run.blame(self.index, where), what=what, advice=advice)


def senders(run: Run, index: int) -> Senders:
    return Senders(run, index, *np.nonzero(run.mask()))


@dataclass(slots=True)
class Window:
    """Places in shared memory, (n,): offsets, and the rows of the chunk whose blocks have it."""

    row: Array
    offset: Array


def window(who: Senders, address: Array) -> Window:
    """The places that shared addresses (B, T) mean."""
    run = who.run
    if run.cluster_size == 1:
        return Window(who.row, who.of(address))
    rows = check_rows(run, who.index, address)
    return Window(who.of(rows), who.of(address) & ((1 << RANK_BIT) - 1))


def check_shared(who: Senders, place: Window, nbytes: Array | int, align: int, what: str) -> None:
    """Raise a fault where `nbytes` from `place` on are not in the block's shared memory, or not aligned."""
    limit = who.run.shared_bytes
    wrong = place.offset % align != 0
    if wrong.any():
        who.refuse(
            wrong,
            Misaligned,
            f"{what} at the shared address {int(place.offset[wrong][0]):#x}, "
            f"which is no multiple of {align}.",
            f"Declare the shared array with alignas({max(align, 128)}).",
        )
    outside = (place.offset < 0) | (place.offset + nbytes > limit)
    if outside.any():
        size = int(np.broadcast_to(nbytes, outside.shape)[outside][0])
        who.refuse(
            outside,
            OutOfBounds,
            f"{what} of {size:,} bytes at byte {int(place.offset[outside][0]):,} of shared memory; "
            f"the block has {limit:,} bytes.",
            "Does the copy fit the shared array, and was enough dynamic shared memory asked for?",
        )


def shared_reach(run: Run, place: Window, offsets: Array, dtype: np.dtype) -> Reach:
    """Elements of shared memory, whose `offsets` (n, E) count bytes from the block's start."""
    view = run.shared.view(dtype)
    return Reach(view.reshape(-1), place.row[:, None] * view.shape[1] + offsets // dtype.itemsize)


def allocations(
    who: Senders, address: Array, size: int, inside: Array | None, writing: bool
) -> Iterator[tuple[Allocation | None, Array]]:
    """The allocations that copies reach, each with the copies (n,) that do. `address` (n, E) are the bytes at
    which elements of `size` bytes begin; those not `inside` do not count. Raises OutOfBounds."""
    memory = who.run.memory
    there = np.ones(address.shape, bool) if inside is None else inside
    used = np.asarray(there.any(axis=1))
    if not used.all():
        yield None, ~used
    if not used.any():
        return
    low = np.where(there, address, np.iinfo(np.int64).max).min(axis=1)
    high = np.where(there, address, -1).max(axis=1) + size
    rest = used.copy()
    while rest.any():
        at = int(rest.argmax())
        found = memory.find(int(low[at]))
        start, stop = (found.address, found.address + found.nbytes) if found is not None else (0, 0)
        here = rest & (low >= start) & (high <= stop)
        if found is None or not here[at] or (writing and not found.writable):
            did = "writes" if writing else "reads"
            bad = np.zeros(len(rest), bool)
            bad[at] = True
            behind = f" and runs {int(high[at]) - stop:,} bytes behind its end" if found is not None else ""
            name = _called(who, int(low[at]), found)
            if found is not None and not found.writable:
                name, behind = f"{name}, which is constant", ""
            who.refuse(
                bad,
                OutOfBounds,
                f"sent a copy that {did} global memory from {int(low[at]):#x} to {int(high[at]) - 1:#x}, "
                f"which begins in {name}{behind}.",
                "Do the size of the copy, its source and its destination belong together?",
            )
        yield found, here
        rest &= ~here


def _called(who: Senders, address: int, found: Allocation | None) -> str:
    """What messages call the array at an address."""
    labels = (label for label in who.run.arrays if label.address <= address < label.address + label.extent)
    if (label := next(labels, None)) is not None:
        return str(label)
    return "no array" if found is None else found.name or "an array"


def global_reach(found: Allocation | None, address: Array, inside: Array | None, dtype: np.dtype) -> Reach:
    """Elements of one allocation."""
    if found is None:
        return Reach(np.zeros(1, dtype), np.zeros(address.shape, np.int64))
    places = (address - found.address) // dtype.itemsize
    if inside is not None:
        places = np.where(inside, places, 0)
    return Reach(found.view(dtype), places, found)


# ---- how a copy ends -----------------------------------------------------------------------------


@dataclass(slots=True)
class Ending:
    """What reports the end of copies: mbarriers, or their bulk group (both None: nothing does)."""

    barrier: Window | None = None
    group: Array | None = None

    def take(self, chosen: Array) -> Ending:
        barrier, group = self.barrier, self.group
        return Ending(
            None if barrier is None else Window(barrier.row[chosen], barrier.offset[chosen]),
            None if group is None else group[chosen],
        )


Locator = Callable[[Run], Array]


def shared_address(decoder: Decoder, operand: Operand) -> Locator:
    """The shared addresses (B, T) that an operand means."""
    address = decoder.address(operand)
    return lambda run: address(run.registers)


def at_barrier(who: Senders, address: Array) -> Ending:
    """Copies that end at mbarriers."""
    place = window(who, address)
    check_shared(who, place, 8, 8, "names an mbarrier")
    view = who.run.shared.view(I64)
    missing = np.isin(view[place.row, place.offset // 8], NONE)
    who.refuse(
        missing,
        WrongBarrier,
        "sent a copy that is to complete at an mbarrier that is not initialised.",
        "One thread initialises it, before any copy names it.",
    )
    return Ending(barrier=place)


def in_group(who: Senders) -> Ending:
    """Copies that are part of their threads' bulk groups."""
    return Ending(group=transfers.flights_of(who.run).group[who.row, who.lane])


def dispatch(
    who: Senders,
    ending: Ending,
    nbytes: Array,
    target: Reach,
    source: Reach | None = None,
    **more: object,
) -> None:
    """Send copies off."""
    barrier = ending.barrier
    transfers.send(
        who.run,
        Flight(
            who.index,
            who.row,
            who.lane,
            nbytes,
            target,
            source,
            group=ending.group,
            barrier=None if barrier is None else barrier.offset,
            barrier_row=None if barrier is None else barrier.row,
            **more,  # type: ignore[arg-type]
        ),
    )


def tell(who: Senders, ending: Ending, transfer: Transfer) -> None:
    """Tell observers what is about to be sent."""
    if ending.barrier is not None:
        transfer.barrier, transfer.barrier_rows = ending.barrier.offset, ending.barrier.row
        view = who.run.shared.view(I64)
        transfer.phase = parity(view[transfer.barrier_rows, transfer.barrier // 8])
    for hear in who.run.on_bulk:
        hear(transfer)


def send_values(
    who: Senders,
    to: Window,
    ending: Ending,
    values: Array,
    dtype: np.dtype,
    function: Callable[..., Array] | None = None,
) -> None:
    """Send values to shared memory, of which each sender has a row: `values` is (senders, elements).

    With a `function` they are combined with what is there, else they replace it.
    """
    count, elements = values.shape
    offsets = to.offset[:, None] + dtype.itemsize * np.arange(elements)
    transfer = Transfer(
        who.index,
        who.run.program.instructions[who.index],
        "exchange",
        dtype.itemsize,
        who.row,
        who.lane,
        who.run.chunk,
        offset=offsets,
        rows=to.row,
        copy=np.arange(count),
    )
    tell(who, ending, transfer)
    nbytes = np.full(count, elements * dtype.itemsize)
    there = shared_reach(who.run, to, offsets, dtype)
    dispatch(who, ending, nbytes, there, values=values, function=function)


def multicast(
    who: Senders, place: Window, ending: Ending, mask: Array, pairs: bool = False
) -> tuple[Array, Window, Ending]:
    """(which copy each delivery is of, where it goes, how it ends) for copies to the blocks of `mask`.

    Each delivery completes at the mbarrier of the block that receives it. With `pairs` (``cta_group::2``) one
    block of each pair waits for both: the even ones if the mbarrier that the copy names is in a block of even
    rank, else the odd ones.
    """
    run = who.run
    wrong = (mask >> run.cluster_size != 0) | (mask == 0)
    if wrong.any():
        who.refuse(
            wrong,
            OutOfBounds,
            f"sent a copy to the blocks {int(mask[wrong][0]):#b} of its cluster (a bit for each), "
            f"which has {run.cluster_size} blocks.",
            "The mask has one bit for each block of the cluster: bit r for rank r.",
        )
    copy, rank = np.nonzero(mask[:, None] >> np.arange(run.cluster_size) & 1)
    first = who.row - run.ranks[who.row, 0]
    row = first[copy] + rank
    barrier = ending.barrier
    assert barrier is not None
    counted = row
    if pairs:
        counted = (row & ~1) | (run.ranks[barrier.row[copy], 0] & 1)
    return copy, Window(row, place.offset[copy]), Ending(Window(counted, barrier.offset[copy]))


# ---- rows of bytes -------------------------------------------------------------------------------


def _bulk(decoder: Decoder, op: Opcode, index: int) -> Step:
    """``cp.async.bulk`` and ``cp.reduce.async.bulk``, without a tensor."""
    parts = op.instruction.parts
    spaces = [part.partition("::")[0] for part in parts if part.partition("::")[0] in ("shared", "global")]
    to, of = spaces[:2]
    operands = list(op.instruction.operands)
    target, source, size = operands[:3]
    more = operands[3:]
    by_barrier = any(part.startswith("mbarrier::complete_tx") for part in parts)
    barrier = shared_address(decoder, more.pop(0)) if by_barrier else None
    mask = decoder.source(more.pop(0), UNSIGNED[2]) if "multicast::cluster" in parts else None
    if "cp_mask" in parts:
        raise decoder.unsupported(op, "Copy whole pieces of 16 bytes.")
    count = decoder.source(size, U32)
    ends = {"shared": shared_address, "global": _global_address}
    place_to, place_of = ends[to](decoder, target), ends[of](decoder, source)
    dtype, function = reduction(decoder, op) if parts[1] == "reduce" else (CHUNK, None)

    def step(run: Run) -> None:
        everyone = senders(run, index)
        sizes = everyone.of(count.value(run.registers)).astype(np.int64)
        _check_size(everyone, sizes)
        ending = at_barrier(everyone, barrier(run)) if barrier is not None else in_group(everyone)
        place, first, masks = place_to(run), place_of(run), mask.value(run.registers) if mask else None
        for size in np.unique(sizes):  # nearly always one
            who, end = everyone, ending
            if (sizes != size).any():
                who, end = everyone.take(sizes == size), ending.take(sizes == size)
            _send(who, end, (to, of), place, first, int(size), masks, dtype, function)

    return step


def _send(
    who: Senders,
    ending: Ending,
    spaces: tuple[str, str],
    target: Array,
    source: Array,
    size: int,
    masks: Array | None,
    dtype: np.dtype,
    function: Callable[..., Array] | None,
) -> None:
    """Copies of the same number of bytes."""
    to, of = spaces
    offsets = np.arange(0, size, dtype.itemsize, dtype=np.int64)
    copy = np.arange(who.row.size)
    if "global" in spaces:
        _check_global(who, who.of(source if to == "shared" else target))
    if to == "shared":
        place = window(who, target)
        check_shared(who, place, size, UNIT, "sent a copy to shared memory")
        if of == "shared":
            origin = window(who, source)
            check_shared(who, origin, size, UNIT, "sent a copy from shared memory")
            tell(who, ending, _told(who, "exchange", size, shared=place, origin=origin))
            reach = shared_reach(who.run, origin, origin.offset[:, None] + offsets, dtype)
        else:
            address = who.of(source)[:, None] + offsets
            if masks is not None:
                copy, place, ending = multicast(who, place, ending, who.of(masks).astype(np.int64))
            tell(who, ending, _told(who, "load", size, address, place, copy))
            for found, here in allocations(who, address, dtype.itemsize, None, False):
                chosen = here[copy]
                reach = global_reach(found, address[copy[chosen]], None, dtype)
                goal = Window(place.row[chosen], place.offset[chosen])
                there = shared_reach(who.run, goal, goal.offset[:, None] + offsets, dtype)
                each = who.take(copy[chosen])
                dispatch(each, ending.take(chosen), np.full(each.row.size, size), there, reach)
            return
        there = shared_reach(who.run, place, place.offset[:, None] + offsets, dtype)
        dispatch(who, ending, np.full(copy.size, size), there, reach, function=function)
        return
    origin = window(who, source)
    check_shared(who, origin, size, UNIT, "sent a copy from shared memory")
    address = who.of(target)[:, None] + offsets
    tell(who, ending, _told(who, "reduction" if function else "store", size, address, origin))
    for found, here in allocations(who, address, dtype.itemsize, None, True):
        reach = global_reach(found, address[here], None, dtype)
        start = Window(origin.row[here], origin.offset[here])
        there = shared_reach(who.run, start, start.offset[:, None] + offsets, dtype)
        each = who.take(here)
        nbytes = np.full(each.row.size, size)
        dispatch(each, ending.take(here), nbytes, reach, there, function=function)


def _told(
    who: Senders,
    kind: str,
    size: int,
    address: Array | None = None,
    shared: Window | None = None,
    copy: Array | None = None,
    origin: Window | None = None,
) -> Transfer:
    units = np.arange(0, size, UNIT, dtype=np.int64)
    run = who.run

    def bytes_of(place: Window | None) -> Array | None:
        return None if place is None else place.offset[:, None] + units

    return Transfer(
        who.index,
        run.program.instructions[who.index],
        kind,
        UNIT,
        who.row,
        who.lane,
        run.chunk,
        address,
        None,
        bytes_of(shared),
        None if shared is None else shared.row,
        np.arange(who.row.size) if copy is None else copy,
        bytes_of(origin),
        None if origin is None else origin.row,
    )


def _check_global(who: Senders, address: Array) -> None:
    wrong = address % UNIT != 0
    if wrong.any():
        who.refuse(
            wrong,
            Misaligned,
            f"sent a bulk copy from or to the global address {int(address[wrong][0]):#x}, "
            f"which is no multiple of {UNIT}.",
            "Let every copy begin at a multiple of 16 bytes of its array.",
        )


def _global_address(decoder: Decoder, operand: Operand) -> Locator:
    address = decoder.address(operand)
    return lambda run: address(run.registers)


def _check_size(who: Senders, sizes: Array) -> None:
    wrong = sizes % UNIT != 0
    if wrong.any():
        who.refuse(
            wrong,
            Misaligned,
            f"sent a bulk copy of {int(sizes[wrong][0]):,} bytes; the size must be a multiple of {UNIT}.",
            "Copy the rest with ordinary loads and stores.",
        )


def reduction(
    decoder: Decoder, op: Opcode, itemtype: str | None = None
) -> tuple[np.dtype, Callable[..., Array]]:
    """The element type of a reduction, and what it makes of (old, new)."""
    parts = op.instruction.parts
    name = next((part for part in parts if part in atomics.INTEGER), None)
    kind = itemtype or next((part for part in reversed(parts) if part in DTYPES or part == "bf16"), None)
    if name is None or kind is None:
        raise decoder.unsupported(op)
    dtype = np.dtype("u2") if kind == "bf16" else DTYPES[kind]
    function = _on_bfloats(name) if kind == "bf16" else atomics.function(name, dtype)
    if function is None:
        raise decoder.unsupported(op)
    return dtype, function


def _on_bfloats(name: str) -> Callable[..., Array] | None:
    call = ON_BFLOATS.get(name)
    if call is None:
        return None
    return lambda old, new: to_bf16(call(from_bf16(old), from_bf16(new)))


# ---- groups and hints ----------------------------------------------------------------------------


def _commit(decoder: Decoder, op: Opcode, index: int) -> Step:
    return transfers.commit


def _wait(decoder: Decoder, op: Opcode, index: int) -> Step:
    operand = op.instruction.operands[0]
    assert isinstance(operand, Immediate)
    allowed, only_reads = int(operand.value), "read" in op.modifiers
    return lambda run: transfers.wait(run, allowed, only_reads)


def _prefetch(decoder: Decoder, op: Opcode, index: int) -> Step:
    """``cp.async.bulk.prefetch.L2``: nothing that a result shows."""
    source, size = op.instruction.operands[:2]
    place, count = _global_address(decoder, source), decoder.source(size, U32)

    def step(run: Run) -> None:
        who = senders(run, index)
        sizes = who.of(count.value(run.registers)).astype(np.int64)
        _check_size(who, sizes)
        for each in np.unique(sizes) if run.on_bulk else ():
            part = who.take(sizes == each)
            address = part.of(place(run))[:, None] + np.arange(0, each, UNIT)
            tell(part, Ending(), _told(part, "prefetch", int(each), address))

    return step


def bulk(decoder: Decoder, op: Opcode, index: int) -> Step:
    """``cp.async.bulk`` without a tensor, and ``cp.reduce.async.bulk``."""
    parts = op.instruction.parts
    if "commit_group" in parts:
        return _commit(decoder, op, index)
    if "wait_group" in parts:
        return _wait(decoder, op, index)
    if "prefetch" in parts:
        return _prefetch(decoder, op, index)
    return _bulk(decoder, op, index)
