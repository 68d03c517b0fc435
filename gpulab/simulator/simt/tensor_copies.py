"""``cp.async.bulk.tensor``: boxes of tensors between global and shared memory, and changes of tensor maps.

A tensor map is 128 bytes of memory, wherever its generic address leads. `tensor_maps` reads them and cuts the
boxes; `transfers` moves the bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from gpulab.simulator.ptx import Address, Immediate, Vector

from . import accesses, tensor_maps
from .bulk_copies import (
    UNIT,
    Ending,
    Senders,
    Window,
    allocations,
    at_barrier,
    check_shared,
    dispatch,
    global_reach,
    in_group,
    multicast,
    reduction,
    senders,
    shared_address,
    shared_reach,
    tell,
    window,
)
from .errors import OutOfBounds, WrongDescriptor
from .events import Transfer
from .executable import Step
from .memory import LOCAL_WINDOW
from .opcodes import Opcode
from .operands import Decoder
from .program import Source
from .run import Run
from .tensor_maps import Box, TensorMap, Type, WrongTensorMap
from .types import I32, I64, U32, UNSIGNED

Array = np.ndarray

DTYPES: dict[int, np.dtype] = {
    1: np.dtype("u1"),
    2: np.dtype("u2"),
    4: np.dtype("u4"),
    8: np.dtype("u8"),
    16: np.dtype("c16"),
}
# How a reduction of a tensor sees its elements: as its opcode would name them.
TYPE_NAMES = {"f32.ftz": "f32", "tf32": "f32", "tf32.ftz": "f32"}
SHARED_ALIGNMENT = 128  # bytes, of a box in shared memory


@lru_cache(maxsize=256)
def decoded(data: bytes) -> TensorMap:
    """What the bytes of a tensor map say. Raises WrongTensorMap."""
    return tensor_maps.decode(data)


def _maps(who: Senders, address: Array) -> list[tuple[TensorMap, Array]]:
    """The tensor maps at `address` (n,), each with those of the senders who use it."""
    found = []
    seen: dict[bytes, list[int]] = {}
    for at, place in enumerate(address.tolist()):
        data = _bytes_at(who, at, place)
        seen.setdefault(data, []).append(at)
    for data, members in seen.items():
        chosen = np.zeros(address.size, bool)
        chosen[members] = True
        try:
            found.append((decoded(data), chosen))
        except WrongTensorMap as error:
            who.refuse(chosen, WrongDescriptor, f"uses a tensor map that breaks a rule. {error}", MADE)
    return found


MADE = "A tensor map is made by cuTensorMapEncodeTiled or field by field with tensormap.replace."


def _bytes_at(who: Senders, at: int, place: int) -> bytes:
    allocation = who.run.memory.find(place) if place < LOCAL_WINDOW else None
    start = place - allocation.address if allocation is not None else 0
    bad = np.zeros(who.row.size, bool)
    bad[at] = True
    if allocation is None or start + tensor_maps.BYTES > allocation.nbytes:
        advice = "Pass it as a __grid_constant__ parameter, or in global or constant memory."
        what = f"uses a tensor map at {place:#x}, which is not in global memory."
        who.refuse(bad, OutOfBounds, what, advice)
    if place % 64:
        what = f"uses a tensor map at {place:#x}, which is no multiple of 64."
        who.refuse(bad, WrongDescriptor, what, "Declare it as a CUtensorMap, or with alignas(64).")
    assert allocation is not None
    return allocation.data[start : start + tensor_maps.BYTES].tobytes()


# ---- copies --------------------------------------------------------------------------------------


def tensor(decoder: Decoder, op: Opcode, index: int) -> Step | None:
    """``cp.async.bulk.tensor``, ``cp.reduce.async.bulk.tensor`` and ``cp.async.bulk.prefetch.tensor``."""
    parts = op.instruction.parts
    operands = list(op.instruction.operands)
    rank = int(next(part for part in parts if part in ("1d", "2d", "3d", "4d", "5d"))[0])
    rows = "tile::gather4" in parts or "tile::scatter4" in parts  # a column and four rows are named
    if any(part.startswith("im2col::") for part in parts):
        raise decoder.unsupported(op, "Of im2col copies, the simulator knows im2col and im2col_no_offs.")
    loads = any(part.startswith("mbarrier::complete_tx") for part in parts)
    prefetches = "prefetch" in parts
    target = operands.pop(0) if loads else None
    described = operands.pop(0)
    assert isinstance(described, Address) and described.base is not None
    map_address = decoder.address(Address(described.base, described.offset))
    coordinates = _coordinates(decoder, described)
    if len(coordinates) != (1 + tensor_maps.GATHERED if rows else rank):
        raise decoder.unsupported(op, f"It names {len(coordinates)} coordinates for {rank} dimensions.")
    by_column = "im2col" in parts
    source = operands.pop(0) if not loads and not prefetches else None
    barrier = shared_address(decoder, operands.pop(0)) if loads else None
    offsets: list[Source] = []
    if by_column and operands and isinstance(operands[0], Vector):
        vector = operands.pop(0)
        assert isinstance(vector, Vector)
        offsets = [decoder.source(item, I32) for item in vector.items]
    mask = decoder.source(operands.pop(0), UNSIGNED[2]) if "multicast::cluster" in parts else None
    shared = next((o for o in (target, source) if o is not None), None)
    place = shared_address(decoder, shared) if shared is not None else None
    column = by_column or "im2col_no_offs" in parts
    operation = parts[1] == "reduce"

    def step(run: Run) -> None:
        everyone = senders(run, index)
        points = np.stack([everyone.of(c.value(run.registers)) for c in coordinates], axis=1)
        ending = Ending()
        if not prefetches:
            ending = at_barrier(everyone, barrier(run)) if barrier is not None else in_group(everyone)
        goal = window(everyone, place(run)) if place is not None else None
        shifts = [everyone.of(o.value(run.registers)) for o in offsets]
        masks = everyone.of(mask.value(run.registers)).astype(np.int64) if mask is not None else None
        for map_, chosen in _maps(everyone, everyone.of(map_address(run.registers))):
            who = everyone.take(chosen)
            shift = np.stack([s[chosen] for s in shifts], axis=1) if shifts else None
            if column and shift is None:
                shift = np.zeros((who.row.size, max(rank - 2, 0)), np.int64)
            here = Window(goal.row[chosen], goal.offset[chosen]) if goal is not None else None
            if rows:
                map_ = _of_rows(who, map_)
            if here is not None:
                _check_box(who, here, map_)
            function = None
            if operation:
                function = reduction(decoder, op, TYPE_NAMES.get(map_.type.name, map_.type.name))
            start = here.offset if here is not None else np.zeros(who.row.size, np.int64)
            units, box = _in_words(*_cut(who, map_, points[chosen], shift, start, operation, rows))
            mine = masks[chosen] if masks is not None else None
            _send(who, ending.take(chosen), map_, units, box, here, loads, mine, function)

    return step


def _coordinates(decoder: Decoder, described: Address) -> list[Source]:
    items = described.coordinates
    if len(items) == 1 and isinstance(items[0], Vector):
        items = items[0].items
    return [decoder.source(item, I32) for item in items]


def _check_box(who: Senders, place: Window, map_: TensorMap) -> None:
    align = SHARED_ALIGNMENT
    check_shared(who, place, map_.room, align, "sent a box of a tensor")


def _of_rows(who: Senders, map_: TensorMap) -> TensorMap:
    """The map whose box is four rows that lie anywhere. Raises WrongDescriptor."""
    try:
        return tensor_maps.of_rows(map_)
    except WrongTensorMap as error:
        everyone = np.ones(who.row.size, bool)
        who.refuse(everyone, WrongDescriptor, f"sent a copy that does not fit its tensor map. {error}", FITS)
        raise AssertionError from error


def _cut(
    who: Senders,
    map_: TensorMap,
    points: Array,
    shift: Array | None,
    start: Array,
    whole: bool,
    rows: bool,
) -> tuple[TensorMap, Box]:
    """The elements of the boxes, which are pieces of 16 bytes where that is what all of them consist of, and
    the map that they are the elements of."""
    unit = map_
    if not whole and shift is None and not map_.im2col:
        unit, points = _in_pieces(map_, points)
    try:
        if shift is not None:
            return unit, tensor_maps.im2col_tile(unit, points, shift, start)
        if rows:
            return unit, tensor_maps.rows_tile(unit, points, start)
        return unit, tensor_maps.tile(unit, points, start)
    except WrongTensorMap as error:
        everyone = np.ones(who.row.size, bool)
        who.refuse(everyone, WrongDescriptor, f"sent a copy that does not fit its tensor map. {error}", FITS)
        raise AssertionError from error


FITS = "The instruction and the call that encoded the map must agree."


def _in_pieces(map_: TensorMap, points: Array) -> tuple[TensorMap, Array]:
    """The same copy with 16 bytes as an element, where no box begins or ends within such a piece and none is
    torn apart in shared memory."""
    per = UNIT // map_.type.itemsize
    numbers = per * map_.type.packs
    torn = map_.type.gap or tensor_maps.ATOMS[map_.atomicity][1] or map_.interleave
    if torn or map_.dimensions[0] % per or (points[:, 0] % numbers).any():
        return map_, points
    pieces = replace(
        map_,
        type=Type(map_.type.name, UNIT, map_.type.nan),
        dimensions=(map_.dimensions[0] // per, *map_.dimensions[1:]),
        box=(map_.box[0] // per, *map_.box[1:]),
    )
    points = points.copy()
    points[:, 0] //= numbers
    return pieces, points


WORD = 4  # bytes; an element of 16 numbers of 6 bits is three words


def _in_words(map_: TensorMap, box: Box) -> tuple[TensorMap, Box]:
    """The same elements as words, where no type of NumPy is as large as an element."""
    if map_.type.itemsize in DTYPES:
        return map_, box
    steps = np.arange(0, map_.type.itemsize, WORD)
    address, shared = (x[..., None] + steps for x in (box.address, box.shared))
    inside = np.broadcast_to(box.inside[..., None], (*box.inside.shape, steps.size))
    return replace(map_, type=Type(map_.type.name, WORD)), Box(address, inside, shared)


def _fill(map_: TensorMap, dtype: np.dtype) -> Array:
    """What an element outside the tensor becomes, or a piece of 16 bytes of such elements."""
    if map_.type.packs > 1:
        return np.zeros(1, dtype)[0]
    element = np.full(UNIT // map_.type.itemsize, map_.fill, UNSIGNED[map_.type.itemsize])
    return element.view(dtype)[0]


def _send(
    who: Senders,
    ending: Ending,
    map_: TensorMap,
    units: TensorMap,
    box: Box,
    place: Window | None,
    loads: bool,
    masks: Array | None,
    function: tuple[np.dtype, Callable[..., Array]] | None,
) -> None:
    count = who.row.size
    size = units.type.itemsize
    dtype = function[0] if function is not None else DTYPES[size]
    address = np.broadcast_to(box.address, (count, *box.address.shape[1:])).reshape(count, -1)
    inside = np.broadcast_to(box.inside, (count, *box.inside.shape[1:])).reshape(count, -1)
    where = None if inside.all() else inside
    copy = np.arange(count)
    if place is not None and loads and masks is not None:
        pairs = "cta_group::2" in who.run.program.instructions[who.index].parts
        copy, place, ending = multicast(who, place, ending, masks, pairs)
    kind = "load" if loads else "prefetch" if place is None else "reduction" if function else "store"
    there = None if place is None else box.shared.reshape(count, -1)[copy]
    if who.run.on_bulk:
        rows = None if place is None else place.row
        instruction = who.run.program.instructions[who.index]
        tell(
            who,
            ending,
            Transfer(
                who.index, instruction, kind, size, who.row, who.lane, who.run.chunk,
                address, where, there, rows, copy,
            ),
        )  # fmt: skip
    if place is None or there is None:
        return
    for found, here in allocations(who, address, size, where, not loads):
        if found is None and not loads:
            continue  # all of it lies outside the tensor
        chosen = here[copy]
        at = copy[chosen]
        each = who.take(at)
        some = None if where is None else where[at]
        outside = global_reach(found, address[at], some, dtype)
        goal = Window(place.row[chosen], place.offset[chosen])
        within = shared_reach(who.run, goal, there[chosen], dtype)
        nbytes = np.full(at.size, map_.nbytes)
        end = ending.take(chosen)
        if loads:
            dispatch(each, end, nbytes, within, outside, inside=some, fill=_fill(map_, dtype))
        else:
            call = function[1] if function is not None else None
            dispatch(each, end, nbytes, outside, within, inside=some, function=call)


# ---- tensor maps ---------------------------------------------------------------------------------

# Numbers of 64 bits; the others are of 32.
WORDS = 8  # of 64 bits: half of a map, which is aligned to 64 bytes
WIDE = ("global_address", "global_stride")


def tensormap(decoder: Decoder, op: Opcode, index: int) -> Step | None:
    """``tensormap.replace`` of one field, and ``tensormap.cp_fenceproxy``."""
    parts = op.instruction.parts
    if parts[1] == "cp_fenceproxy":
        return _copy_map(decoder, op, index)
    field = next((part for part in parts if part in tensor_maps.REPLACED), None)
    if parts[1] != "replace" or field is None:
        raise decoder.unsupported(op)
    place, *ordinals, value = op.instruction.operands
    number = int(ordinals[0].value) if ordinals and isinstance(ordinals[0], Immediate) else 0
    given = decoder.source(value, I64 if field in WIDE else U32)
    space = _space(parts)
    address = decoder.address(place)

    def step(run: Run) -> None:
        at = address(run.registers)
        words = _load_map(run, index, space, at)
        who = senders(run, index)
        maps = np.stack([who.of(word) for word in words], axis=1)
        values = who.of(given.value(run.registers))
        for i, value in enumerate(values.tolist()):
            try:
                new = tensor_maps.replaced(maps[i].tobytes(), field, value, number)
            except WrongTensorMap as error:
                bad = np.zeros(len(maps), bool)
                bad[i] = True
                who.refuse(bad, WrongDescriptor, f"changes a tensor map to what it cannot be. {error}", "")
            maps[i] = np.frombuffer(new, np.int64)
        _store_map(run, index, space, at, _spread(who, maps))

    return step


def _copy_map(decoder: Decoder, op: Opcode, index: int) -> Step:
    """The map in shared memory is copied to global memory, where TMA sees it after the fence."""
    target, source = op.instruction.operands[:2]
    to, of = decoder.address(target), decoder.address(source)

    def step(run: Run) -> None:
        words = _load_map(run, index, "shared", of(run.registers))
        _store_map(run, index, "global", to(run.registers), words)

    return step


def _load_map(run: Run, index: int, space: str, address: Array) -> list[Array]:
    """The 16 words of a map, read without telling any observer."""
    with run.unheard():
        halves = [accesses.load(run, index, space, address + at, I64, WORDS) for at in (0, 8 * WORDS)]
    return halves[0] + halves[1]


def _store_map(run: Run, index: int, space: str, address: Array, words: list[Array]) -> None:
    with run.unheard():
        accesses.store(run, index, space, address, words[:WORDS])
        accesses.store(run, index, space, address + 8 * WORDS, words[WORDS:])


def _space(parts: tuple[str, ...]) -> str:
    named = (part.partition("::")[0] for part in parts)
    return next((name for name in named if name in ("global", "shared")), "generic")


def _spread(who: Senders, maps: Array) -> list[Array]:
    """The words of each sender's map, (n, 16), as arrays (B, T)."""
    words = []
    for column in maps.T:
        word = np.zeros(who.run.shape, np.int64)
        word[who.row, who.lane] = column
        words.append(word)
    return words
