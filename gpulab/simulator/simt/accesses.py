"""Loads, stores and atomics of one group of lanes, in every memory space, checked against real bounds.

Addresses are int64 arrays broadcastable to (B, T). Shared and local addresses are offsets into the block's or
the thread's own window.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gpulab.simulator.ptx import Instruction

from . import access_faults, atomics, moves
from .clusters import Part, locate, split
from .compiled import are_accesses_worth_compiling
from .copies import Pending
from .errors import OutOfBounds
from .events import Access
from .flights import unread
from .memory import LOCAL_WINDOW, SHARED_WINDOW, WINDOW
from .run import Run
from .types import SIGNED, widened

Array = np.ndarray

# All places were checked, so none is out of range: this is the fastest of NumPy's ways to be told so.
ANY: Literal["wrap"] = "wrap"
WINDOWS = ("shared", "cluster", "local")  # spaces of a block, of several and of a thread
NOWHERE: tuple[Array | None, Array | None, Array] = None, None, np.empty((0, 0), np.int64)
READ_ONLY = {"const": "constants", "param": "parameters"}  # spaces whose instructions reach nothing else


@dataclass(slots=True)
class Reached:
    """What some lanes reach with an access: the elements of an array, the place of each lane's element among
    them, and which lanes that concerns (None: all)."""

    view: Array
    places: Array
    lanes: Array | None = None


def load(run: Run, index: int, space: str, address: Array, dtype: np.dtype, count: int) -> list[Array]:
    """`count` neighbouring elements of `dtype` for each lane; lanes outside the group get some value."""
    if space == "generic" or (space == "shared" and run.cluster_size > 1):
        return _load_parts(run, index, _parts(run, index, space, address), dtype, count)
    return _load(run, index, space, address, dtype, count)


def _load(
    run: Run, index: int, space: str, address: Array, dtype: np.dtype, count: int, rows: Array | None = None
) -> list[Array]:
    size = dtype.itemsize * count
    if space == "local":
        values = _load_local(run, index, address, dtype, count)
    elif space == "shared":
        values = load_shared(run, index, address, dtype, count)
    elif rows is not None:
        (target,) = _window_target(run, index, space, address, dtype, count, rows)
        values = [target.view.take(target.places + i, mode=ANY) for i in range(count)]
    else:
        values = _load_global(run, index, address, dtype, count)
        if space in READ_ONLY:
            _check_read_only(run, index, address, space, size)
    if run.on_access:
        tell(run, index, "global" if space == "param" else space, "load", address, size, values, rows)
    return values


def store(run: Run, index: int, space: str, address: Array, values: list[Array]) -> None:
    """Write `values` (one array per vector element, of the memory's element type) for the lanes of the
    group."""
    if space == "generic" or (space == "shared" and run.cluster_size > 1):
        for part in _parts(run, index, space, address):
            with run.only(part.lanes):
                _store(run, index, part.space, part.address, values, part.rows)
        return
    _store(run, index, space, address, values)


def _store(
    run: Run, index: int, space: str, address: Array, values: list[Array], rows: Array | None = None
) -> None:
    dtype, count = values[0].dtype, len(values)
    window = _compiled_window(run, index, space, address, dtype, count, rows, writing=True)
    if window is not None:
        targets = []
    elif space == "global" or space == "const":
        targets = _global_places(run, index, address, dtype, count, writing=True)
    else:
        targets = _window_target(run, index, space, address, dtype, count, rows)
    if run.on_access:  # before the write: an observer may want to see what was there
        tell(run, index, space, "store", address, dtype.itemsize * count, values, rows)
    lanes = [_both(run.lanes, target.lanes) for target in targets]
    # Where somebody waits for memory to change, storing what is there already is no change. Nobody waits for
    # what a thread keeps for itself.
    if space != "local" and (
        not run.idle
        or any(_differs(t.view, t.places, values, w) for t, w in zip(targets, lanes, strict=True))
    ):
        run.changed()
    for target, who in zip(targets, lanes, strict=True):
        _scatter(target.view, target.places, values, who)
    if window is not None:
        moves.store(window, address, run.lanes, _shape(run, window, address, *values), values)


def store_window(run: Run, index: int, space: str, address: Array, values: list[Array]) -> None:
    """A store to shared or local memory that no observer is told of."""
    for target in _window_target(run, index, space, address, values[0].dtype, len(values)):
        _scatter(target.view, target.places, values, run.lanes)


def atomic(
    run: Run,
    index: int,
    space: str,
    address: Array,
    function: Callable[..., Array],
    dtype: np.dtype,
    operands: tuple[Array, ...],
    keep: bool,
) -> Array | None:
    """Apply an atomic, `function` of (old, operands…); returns the old values (B, T) when `keep`, garbage
    outside the group."""
    if space == "generic" or (space == "shared" and run.cluster_size > 1):
        result = None
        for part in _parts(run, index, space, address):
            with run.only(part.lanes):
                found = _atomic(
                    run, index, part.space, part.address, function, dtype, operands, keep, part.rows
                )
            if found is not None:
                result = found if result is None else np.where(run.full(part.lanes), found, result)
        return result
    return _atomic(run, index, space, address, function, dtype, operands, keep)


def _atomic(
    run: Run,
    index: int,
    space: str,
    address: Array,
    function: Callable[..., Array],
    dtype: np.dtype,
    operands: tuple[Array, ...],
    keep: bool,
    rows: Array | None = None,
) -> Array | None:
    if space in WINDOWS:
        targets = _window_target(run, index, space, address, dtype, 1, rows)
    else:
        targets = _global_places(run, index, address, dtype, 1, writing=True)
    if run.on_access:
        kind = "atomic" if keep else "reduction"
        tell(run, index, space, kind, address, dtype.itemsize, list(operands), rows)
    shape = (run.chunk.blocks.size, run.chunk.lanes_per_block)
    old = np.zeros(shape, dtype)
    lanes = run.lanes
    turn = slice(None, None, -1 if run.frame.schedule.backwards else 1)
    for target in targets:
        view, chosen = target.view, _both(lanes, target.lanes)
        selected = slice(None) if chosen is None else np.flatnonzero(np.broadcast_to(chosen, shape))
        flat = np.broadcast_to(target.places, shape).reshape(-1)[selected][turn]
        values = tuple(np.broadcast_to(o, shape).reshape(-1)[selected][turn] for o in operands)
        if not keep and isinstance(function, np.ufunc):
            function.at(view, flat, values[0])
            run.changed()
            continue
        before = view[flat]
        found = atomics.apply(function, view, flat, values)
        if not np.array_equal(view[flat], before):
            run.changed()
        old.reshape(-1)[selected] = found[turn]
    run.idle += 1
    return old if keep else None


# ---- global memory -------------------------------------------------------------------------------


def _load_global(run: Run, index: int, address: Array, dtype: np.dtype, count: int) -> list[Array]:
    window = _compiled_window(run, index, "global", address, dtype, count)
    if window is not None:
        return moves.load(window, address, run.lanes, _shape(run, window, address), count)
    parts = _global_places(run, index, address, dtype, count, writing=False)
    if len(parts) == 1:
        view, places = parts[0].view, parts[0].places
        return [view.take(places + i if i else places, mode=ANY) for i in range(count)]
    values: list[Array] = []
    for i in range(count):
        value = np.zeros((1, 1), dtype)
        for part in parts:  # where several allocations are hit, each part has its lanes
            element = part.view.take(part.places + i, mode=ANY)
            value = np.where(part.lanes, element, value)  # type: ignore[arg-type]
        values.append(value)
    return values


def _global_places(
    run: Run, index: int, address: Array, dtype: np.dtype, count: int, writing: bool
) -> list[Reached]:
    """What is reached in each allocation that is hit."""
    size = dtype.itemsize * count
    shift = dtype.itemsize.bit_length() - 1
    address = _inside(run, address)
    found = run.nearby.get(index)
    if found is not None and (found.writable or not writing):  # most likely the same allocation as before
        offset = address - found.address
        reach = _reach(offset)
        if 0 <= reach <= found.nbytes - size and not reach & (size - 1):
            if found.book is not None:
                access_faults.check_heap(run, index, offset, size, found.book, writing)
            if writing:
                run.memory.writes(found, offset)
            return [Reached(found.view(dtype), offset >> shift)]
    low, high = int(address.min()), int(address.max())
    if size > 1 and _reach(address) & (size - 1):
        access_faults.fault_misaligned(run, index, "global", address, size)
    if found is None or low < found.address or high + size > found.address + found.nbytes:
        found = run.memory.find(low)
        if found is None or high + size > found.address + found.nbytes:
            return _several(run, index, address, dtype, size, writing)
        run.nearby[index] = found
    if writing and not found.writable:
        access_faults.fault_outside(run, index, address, size, "wrote")
    offset = address - found.address
    if found.book is not None:
        access_faults.check_heap(run, index, offset, size, found.book, writing)
    if writing:
        run.memory.writes(found, offset)
    return [Reached(found.view(dtype), offset >> shift)]


def _reach(offset: Array) -> int:
    """All bits that any of the offsets has: none of them is larger, it is negative if one of them is, and
    its last bits are 0 if theirs are. So one pass shows that all of them are in order, if they are."""
    return int(np.bitwise_or.reduce(offset, axis=None))


def _check_read_only(run: Run, index: int, address: Array, space: str, size: int) -> None:
    """Raise OutOfBounds where an instruction for constants or parameters reads an array: on a GPU they lie in
    windows of their own."""
    address = _inside(run, address)
    first, last = (run.memory.find(int(end)) for end in (address.min(), address.max()))
    hit = [first] if first is last else [run.memory.find(int(a)) for a in np.unique(address)]
    if any(allocation is None or allocation.writable for allocation in hit):
        raise OutOfBounds(
            **run.blame(index, np.ones(run.shape, bool)),
            what=f"read {size} bytes of global memory with an instruction for {READ_ONLY[space]}.",
            advice=f"ld.{space} reads {READ_ONLY[space]} and nothing else.",
        )


def _several(
    run: Run, index: int, address: Array, dtype: np.dtype, size: int, writing: bool
) -> list[Reached]:
    """As `_global_places`, where lanes hit more than one allocation, or none."""
    parts: list[Reached] = []
    rest = np.ones(address.shape, bool)
    while rest.any():
        first = int(address[rest][0])
        allocation = run.memory.find(first)
        if allocation is None or (writing and not allocation.writable):
            access_faults.fault_outside(run, index, address, size, "wrote" if writing else "read")
        assert allocation is not None
        here = (
            rest
            & (address >= allocation.address)
            & (address + size <= allocation.address + allocation.nbytes)
        )
        if not here.flat[int(np.flatnonzero(rest)[0])]:
            access_faults.fault_outside(run, index, address, size, "wrote" if writing else "read")
        offset = np.where(here, address - allocation.address, 0)
        if allocation.book is not None:
            access_faults.check_heap(run, index, offset, size, allocation.book, writing, here)
        if writing:
            run.memory.writes(allocation, offset[here])
        shift = dtype.itemsize.bit_length() - 1
        parts.append(Reached(allocation.view(dtype), offset >> shift, here))
        rest &= ~here
    return parts


def _inside(run: Run, address: Array) -> Array:
    """The addresses with those of lanes outside the group replaced by one of a lane inside it."""
    lanes = run.lanes
    if lanes is None or address.size == 1:
        return address
    if lanes.shape != address.shape:
        lanes, address = np.broadcast_arrays(lanes, address)
    return np.where(lanes, address, address.flat[int(lanes.argmax())])


def _scatter(view: Array, places: Array, values: list[Array], lanes: Array | None) -> None:
    for i, value in enumerate(values):
        where = places + i if i else places
        if lanes is None:
            shape = np.broadcast_shapes(where.shape, value.shape)
            view[widened(where, shape)] = value
        else:
            shape = np.broadcast_shapes(where.shape, value.shape, lanes.shape)
            chosen = widened(lanes, shape)
            view[widened(where, shape)[chosen]] = widened(value, shape)[chosen]


def _differs(view: Array, places: Array, values: list[Array], lanes: Array | None) -> bool:
    """Whether `_scatter` would change anything."""
    for i, value in enumerate(values):
        different = view[places + i] != value
        if (different if lanes is None else different & lanes).any():
            return True
    return False


def _both(lanes: Array | None, part: Array | None) -> Array | None:
    if lanes is None or part is None:
        return part if lanes is None else lanes
    return lanes & part


# ---- shared and local memory: windows of the block and of the thread -----------------------------


def load_shared(run: Run, index: int, address: Array, dtype: np.dtype, count: int) -> list[Array]:
    """A load from shared memory that no observer is told of."""
    view = run.shared.view(dtype)  # (B, elements)
    known, lanes, places = run.placed.get(index, NOWHERE)
    if len(address) > 1 or (run.lanes is not None and len(run.lanes) > 1):
        window = _compiled_window(run, index, "shared", address, dtype, count)
        if window is not None:
            return moves.load(window, address, run.lanes, _shape(run, window, address), count)
    if known is not address or lanes is not run.lanes:
        checked = in_window(run, index, "shared", address, dtype.itemsize * count)
        places = checked >> (dtype.itemsize.bit_length() - 1)
        if len(places) == 1:
            run.placed[index] = address, run.lanes, places
    if len(places) == 1:  # the same pattern in every block
        row = places[0]
        if len(row) > 1 and are_accesses_worth_compiling(len(view) * len(row)):
            return [moves.load_rows(view, row + i if i else row) for i in range(count)]
        return [view.take(row + i if i else row, axis=1, mode=ANY) for i in range(count)]
    places = places + run.block_rows * view.shape[1]
    flat = view.reshape(-1)
    return [flat.take(places + i if i else places, mode=ANY) for i in range(count)]


def peek_shared(run: Run, index: int, address: Array, dtype: np.dtype) -> Array:
    """An element of shared memory of any block of the cluster, read without telling any observer."""
    offset, rows = locate(run, index, address)
    (target,) = _window_target(run, index, "cluster", offset, dtype, 1, rows)
    return target.view.take(target.places, mode=ANY)


def _load_local(run: Run, index: int, address: Array, dtype: np.dtype, count: int) -> list[Array]:
    size = dtype.itemsize * count
    address = in_window(run, index, "local", address, size)
    view = run.local.view(dtype)  # (B, T, elements)
    if address.size == 1:
        place = int(address.flat[0]) // dtype.itemsize
        return [view[:, :, place + i].copy() for i in range(count)]
    window = _compiled_window(run, index, "local", address, dtype, count)
    if window is not None:
        return moves.load(window, address, run.lanes, _shape(run, window, address), count)
    flat, places = _window_places(run, "local", address, dtype)
    return [flat.take(places + i, mode=ANY) for i in range(count)]


def _window_places(
    run: Run, space: str, address: Array, dtype: np.dtype, rows: Array | None = None
) -> tuple[Array, Array]:
    """(all elements of the chunk's windows as one row, each lane's place in it)."""
    shift = dtype.itemsize.bit_length() - 1
    if space != "local":
        view = run.shared.view(dtype)
        rows = run.block_rows if rows is None else rows
        return view.reshape(-1), (address >> shift) + rows * view.shape[1]
    own = run.local.view(dtype)
    return own.reshape(-1), (address >> shift) + run.lane_rows * own.shape[2]


def _window_target(
    run: Run,
    index: int,
    space: str,
    address: Array,
    dtype: np.dtype,
    count: int,
    rows: Array | None = None,
) -> list[Reached]:
    """As `_global_places`, for shared and local memory, where all lanes hit one array."""
    address = in_window(run, index, space, address, dtype.itemsize * count)
    return [Reached(*_window_places(run, space, address, dtype, rows))]


def in_window(run: Run, index: int, space: str, address: Array, size: int) -> Array:
    """The addresses, checked, with those of lanes outside the group replaced by one of a lane inside it."""
    address = _inside(run, address)
    limit = run.local_bytes if space == "local" else run.shared_bytes
    reach = _reach(address)
    if reach & (size - 1):
        access_faults.fault_misaligned(run, index, space, address, size)
    if 0 <= reach <= limit - size:
        return address
    low, high = int(address.min()), int(address.max())
    if low < 0 or high + size > limit:
        bad = (address < 0) | (address + size > limit)
        place = access_faults.first(run, bad)
        offset = int(np.broadcast_to(address, run.shape)[place])
        did = "read" if run.program.is_load(index) else "wrote"
        advice = f"Is the index into the {space} array smaller than its size for every thread?"
        if space == "local":
            what = f"{size} bytes at byte {offset} of local memory; the thread has {limit} bytes."
        else:
            if limit == 0:
                advice = "The launch gave the block no dynamic shared memory."
            what = access_faults.shared_element(run, index, offset, limit, size)
        found = None
        if space == "shared" and limit:
            found = access_faults.outside_shared(run, index, offset, limit, size, did)
        raise OutOfBounds(**run.blame(index, bad), what=f"{did} {what}", advice=advice, outside=found)
    return address


# ---- compiled accesses ---------------------------------------------------------------------------


def _compiled_window(
    run: Run,
    index: int,
    space: str,
    address: Array,
    dtype: np.dtype,
    count: int,
    rows: Array | None = None,
    writing: bool = False,
) -> moves.Window | None:
    """Where compiled code is to make an access; None if it is not worth it, or anything is unusual."""
    if address.size == 1 or rows is not None or dtype.itemsize not in moves.BITS:
        return None
    if not are_accesses_worth_compiling(max(address.size, 0 if run.lanes is None else run.lanes.size)):
        return None
    found = None
    if space == "shared":
        shared = run.shared.view(dtype)
        window = moves.Window(shared.reshape(-1), 0, run.shared_bytes, shared.shape[1])
    elif space == "local":
        own = run.local.view(dtype)
        window = moves.Window(own.reshape(-1), 0, run.local_bytes, own[0].size, own.shape[2])
    else:
        found = run.nearby.get(index)
        if found is None or found.book is not None:  # a heap has bounds of its own inside
            return None
        if writing and (run.memory.journal is not None or not found.writable):
            return None
        window = moves.Window(found.view(dtype), found.address, found.nbytes)
    if (writing and run.idle) or not moves.is_in_order(
        window, address, run.lanes, _shape(run, window, address), count
    ):
        return None
    if writing and found is not None:
        run.memory.writes(found)
    return window


def _shape(run: Run, window: moves.Window, *arrays: Array) -> tuple[int, int]:
    """Of an access, which has a row for each block in a window of the block and a column for each lane in one
    of the lane."""
    every = arrays if run.lanes is None else (*arrays, run.lanes)
    rows, columns = max(len(each) for each in every), max(each.shape[1] for each in every)
    return run.shape[0] if window.row else rows, run.shape[1] if window.column else columns


# ---- generic addresses ---------------------------------------------------------------------------


def _parts(run: Run, index: int, space: str, address: Array) -> list[Part]:
    """The lanes of the group by the memories that their addresses, generic or of shared memory, are in."""
    if space == "shared":
        return split(run, index, address)
    lanes = np.broadcast_to(True if run.lanes is None else run.lanes, run.shape)
    shared = address >= SHARED_WINDOW
    local = (address >= LOCAL_WINDOW) & (address < LOCAL_WINDOW + WINDOW)
    parts = []
    if (inside := lanes & shared).any():
        with run.only(inside):
            parts += split(run, index, address - SHARED_WINDOW)
    if (inside := lanes & local).any():
        parts.append(Part("local", inside, address - LOCAL_WINDOW))
    if (inside := lanes & ~(shared | local)).any():
        parts.append(Part("global", inside, address))
    return parts


def _load_parts(run: Run, index: int, parts: list[Part], dtype: np.dtype, count: int) -> list[Array]:
    values: list[Array] = []
    for part in parts:
        with run.only(part.lanes):
            found = _load(run, index, part.space, part.address, dtype, count, part.rows)
        values = (
            [np.where(run.full(part.lanes), new, old) for new, old in zip(found, values, strict=True)]
            if values
            else found
        )
    return values


# ---- telling -------------------------------------------------------------------------------------


def tell(
    run: Run,
    index: int,
    space: str,
    kind: str,
    address: Array,
    size: int,
    values: list[Array],
    rows: Array | None = None,
) -> None:
    """An access happened: pass it to those who listen."""
    instruction: Instruction = run.program.instructions[index]
    access = Access(index, instruction, space, kind, address, size, run.lanes, run.chunk, values, rows)
    for hear in run.on_access:
        hear(access)
    if not run.on_early or space not in ("shared", "cluster"):
        return
    pending = run.copies.pending if run.copies is not None and space == "shared" else []
    if pending or (run.flights is not None and run.flights.going):
        _tell_early(run, pending, index, kind, address, size, rows)


def _tell_early(
    run: Run, pending: list[Pending], index: int, kind: str, address: Array, size: int, owner: Array | None
) -> None:
    """Tell observers of lanes that touch shared memory to which a copy is still on its way, or that write
    what a bulk copy has still to read."""
    rows, lanes = np.nonzero(run.mask())
    touched = np.broadcast_to(address, run.shape)[rows, lanes, None] + np.arange(size)
    touched = touched.clip(0, run.shared.shape[1] - 1)  # bounds are checked elsewhere
    there = rows if owner is None else np.broadcast_to(owner, run.shape)[rows, lanes]
    for flight in run.flights.going if run.flights is not None and kind != "load" else ():
        leaving = unread(run.shared, flight)
        if leaving is None:
            continue
        early = np.zeros(run.shape, bool)
        early[rows, lanes] = leaving[there[:, None], touched].any(axis=1)
        if early.any():
            for hear in run.on_early:
                hear(index, flight.index, early, run.chunk)
    for copy in pending:
        coming = np.zeros(run.shared.shape, bool)
        row, lane = np.nonzero(copy.lanes)
        start = np.broadcast_to(copy.address, run.shape)[row, lane, None]
        coming[row[:, None], start + np.arange(4 * len(copy.values))] = True
        early = np.zeros(run.shape, bool)
        early[rows, lanes] = coming[rows[:, None], touched].any(axis=1)
        if early.any():
            for hear in run.on_early:
                hear(index, copy.index, early, run.chunk)


def memory_dtype(register: np.dtype, size: int) -> np.dtype:
    """How the elements of an access are seen: as the register's own type where the sizes agree."""
    return register if register.itemsize == size else SIGNED[size]
