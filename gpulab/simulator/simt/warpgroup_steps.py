"""``wgmma``: products of matrices that a warpgroup asks for, and gets when it waits for them.

Until its wait a product has not been made. Operands in shared memory are read at the wait, so a kernel that
overwrites them too early multiplies what it has written, and accumulators hold until then what they held
before. Both go wrong here every time, and not only now and then. An A in registers is read at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gpulab.simulator.ptx import Immediate, Operand, Register, Vector

from . import accesses
from .errors import OutOfBounds, WrongMatrix
from .executable import Step
from .matrix import ELEMENTS
from .matrix_descriptors import decode, element_addresses
from .opcodes import Opcode, matrix_shape
from .operands import Decoder
from .products import Product, Products
from .program import Source
from .run import Run
from .sparse import kept_columns, selectors, spread
from .steps import Builder
from .swizzles import CHUNK
from .types import BOOL, DTYPES, I32, I64
from .warpgroup_matrices import (
    ROWS,
    THREADS,
    check,
    columns_of_a,
    multiply_accumulate,
    operand_places,
    result_places,
)
from .warpgroup_meetings import by_warpgroup, lanes_of

Array = np.ndarray

CHUNKS = np.dtype(np.complex128)  # 16 bytes as one element
SUMS = 1 << 15  # that are made at once: their terms fit the cache
TRANSPOSED = ("f16", "bf16")  # types whose operands say which way they are stored
PIECES = THREADS  # of 16 bytes, of which observers are told at once: one for each thread


# ---- waiting -------------------------------------------------------------------------------------


def _products_of(run: Run) -> Products:
    """The products of a chunk, which begin with the first one that is asked for."""
    if run.products is None:
        run.products = Products(np.zeros((run.shape[0], run.shape[1] // THREADS), np.int64))
    return run.products


def _warpgroups(run: Run) -> Array:
    """The warpgroups of the group's lanes, (B, G)."""
    return np.asarray(by_warpgroup(run, run.mask()).any(axis=-1))


def _commit(decoder: Decoder, op: Opcode, index: int) -> Step:
    def step(run: Run) -> None:
        products = _products_of(run)
        products.group = products.group + _warpgroups(run)

    return step


def _wait(decoder: Decoder, op: Opcode, index: int) -> Step:
    (operand,) = op.instruction.operands
    if not isinstance(operand, Immediate):
        raise decoder.unsupported(op)
    allowed = int(operand.value)

    def step(run: Run) -> None:
        products = _products_of(run)
        here = _warpgroups(run)
        for product in products.pending:
            ready = product.waiting & here & (product.group < products.group - allowed)
            if ready.any():
                product.finish(ready)
                product.waiting = product.waiting & ~ready
        products.pending = [product for product in products.pending if product.waiting.any()]
        for hear in run.on_warp_sync:  # all lanes of a warp know from here on that its products are made
            hear(index, run.lanes, None, run.chunk)

    return step


def _fence(decoder: Decoder, op: Opcode, index: int) -> None:
    """``wgmma.fence`` orders registers, which are in order here."""


# ---- operands ------------------------------------------------------------------------------------


class Tile(NamedTuple):
    """An operand in shared memory: `height` rows of A or columns of B, each of `width` elements of k."""

    height: int
    width: int
    itemsize: int
    k_major: bool


@lru_cache(maxsize=1024)
def _chunks(word: int, tile: Tile) -> Array:
    """Which chunks of 16 bytes of shared memory a descriptor names: (height, chunks of k), or transposed.

    Raises ValueError for an operand that no descriptor can name.
    """
    addresses = element_addresses(decode(word), tile.height, tile.width, tile.itemsize, tile.k_major)
    if not tile.k_major:
        addresses = addresses.T
    return np.ascontiguousarray(addresses[:, :: CHUNK // tile.itemsize] // CHUNK)


class Shared(NamedTuple):
    """An operand in shared memory as an instruction names it."""

    descriptor: Source
    tile: Tile
    decode: Callable[[Array], Array]


class Held(NamedTuple):
    """An A in registers; `places` (64, columns) says where each element is among those of a warpgroup."""

    registers: tuple[Source, ...]
    places: Array
    decode: Callable[[Array], Array]


@dataclass(frozen=True)
class Multiply:
    """A ``wgmma.mma_async`` without the contents of its registers."""

    index: int
    n: int
    types: tuple[str, str, str]  # of D, A and B
    a: Shared | Held
    b: Shared
    slots: tuple[int | None, ...]
    c: tuple[Source, ...]
    adds: Source
    negates: tuple[bool, bool]
    saturates: bool
    metadata: Source | None
    selector: int


@dataclass(frozen=True)
class Given:
    """What registers held: a word for each warpgroup (B, G), or for each thread (B, G, 128, registers)."""

    a: Array
    b: Array
    adds: Array
    metadata: Array | None


def _word(run: Run, multiply: Multiply, source: Source, what: str) -> Array:
    """An operand that is the same for all threads of a warpgroup, (B, G). Raises WrongMatrix where not."""
    value = source.value(run.registers)
    if value.shape[1] == 1:
        return np.broadcast_to(value, (run.shape[0], run.shape[1] // THREADS))
    wide = by_warpgroup(run, np.broadcast_to(value, run.shape))
    differs = (wide != wide[..., :1]).any(axis=-1) & _warpgroups(run)
    if differs.any():
        raise WrongMatrix(
            **run.blame(multiply.index, lanes_of(run, differs)),
            what=f"gives {what} that is not the same in all threads of its warpgroup.",
            advice="All 128 threads of a warpgroup must work it out from the same values.",
        )
    return wide[..., 0]


def _chunks_of(run: Run, multiply: Multiply, operand: Shared, word: int, warpgroups: Array) -> Array:
    """`_chunks`, all of them in the block's shared memory. Raises WrongMatrix or OutOfBounds."""
    try:
        chunks = _chunks(word, operand.tile)
    except ValueError as error:
        raise WrongMatrix(
            **run.blame(multiply.index, lanes_of(run, warpgroups)),
            what=f"gives the matrix descriptor {word & (1 << 64) - 1:#x}, which names no such operand.",
            advice=str(error),
        ) from None
    end = (int(chunks.max()) + 1) * CHUNK
    if end > run.shared_bytes:
        raise OutOfBounds(
            **run.blame(multiply.index, lanes_of(run, warpgroups)),
            what=f"named a matrix that reaches up to byte {end:,} of shared memory, but its block has "
            f"{run.shared_bytes:,}.",
            advice="Check the start address of the matrix descriptor and its two offsets, all in units of "
            "16 bytes.",
        )
    return chunks


def _read_shared(run: Run, multiply: Multiply, operand: Shared, words: Array, chosen: Array) -> Array:
    """The operand of each chosen warpgroup, (warpgroups, height, width). Some of them may share one."""
    row = np.nonzero(chosen)[0]
    asked, which = np.unique(np.stack([row, words[chosen]]), axis=1, return_inverse=True)
    memory = run.shared.view(CHUNKS)
    tile = operand.tile
    found = np.empty((asked.shape[1], tile.height, tile.width))
    for word in np.unique(asked[1]):
        mine = asked[1] == word
        chunks = _chunks_of(run, multiply, operand, int(word), chosen & (words == word))
        octets = memory[asked[0][mine, None, None], chunks].view(np.uint8)
        values = operand.decode(octets)
        found[mine] = values if tile.k_major else values.swapaxes(-1, -2)
    return found[which.reshape(-1)]


def _read_held(held: Held, contents: Array, chosen: Array) -> Array:
    values = held.decode(np.ascontiguousarray(contents[chosen]))
    return values.reshape(len(values), -1)[:, held.places].astype(np.float64)


def _capture(run: Run, registers: tuple[Source, ...]) -> Array:
    """Contents of registers (B, G, 128, registers)."""
    values = [np.broadcast_to(source.value(run.registers), run.shape) for source in registers]
    return np.stack([by_warpgroup(run, value) for value in values], axis=-1)


# ---- the product ---------------------------------------------------------------------------------


def _finish(run: Run, multiply: Multiply, given: Given, chosen: Array) -> None:
    """Make the product of the chosen warpgroups (B, G), and write it to the accumulators."""
    d_type, a_type, b_type = multiply.types
    _tell(run, multiply, given, chosen, made=True)
    if isinstance(multiply.a, Shared):
        a = _read_shared(run, multiply, multiply.a, given.a, chosen)
    else:
        a = _read_held(multiply.a, given.a, chosen)
    if given.metadata is not None:
        a = spread(a, kept_columns(given.metadata[chosen], a_type, ROWS, a.shape[-1], multiply.selector))
    b = _read_shared(run, multiply, multiply.b, given.b, chosen)
    a, b = (-x if negates else x for x, negates in zip((a, b), multiply.negates, strict=True))
    c = _accumulated(run, multiply, chosen)
    c[~given.adds[chosen]] = 0
    result = np.empty(c.shape, DTYPES[d_type])
    batch = max(1, SUMS // (ROWS * multiply.n))
    for first in range(0, len(c), batch):
        part = slice(first, first + batch)
        result[part] = multiply_accumulate(
            a[part], b[part], c[part], a_type, b_type, d_type, multiply.saturates
        )
    _hand_out(run, multiply, result, chosen)


def _accumulated(run: Run, multiply: Multiply, chosen: Array) -> Array:
    """C of the chosen warpgroups, (warpgroups, 64, n)."""
    rows, columns = result_places(multiply.n)
    contents = np.ascontiguousarray(_capture(run, multiply.c)[chosen])
    if multiply.types[0] == "f16":
        contents = contents.view(np.float16)
    found = np.empty((len(contents), ROWS, multiply.n))
    found[:, rows, columns] = contents
    return found


def _hand_out(run: Run, multiply: Multiply, result: Array, chosen: Array) -> None:
    rows, columns = result_places(multiply.n)
    contents = np.ascontiguousarray(result[:, rows, columns])  # (warpgroups, 128, elements)
    if multiply.types[0] == "f16":
        contents = contents.view(I32)
    lanes = lanes_of(run, chosen)
    whole = chosen.all() and chosen.shape[1] * THREADS == run.shape[1]
    by_register = np.ascontiguousarray(np.moveaxis(contents, -1, 0))
    with _writing(run, chosen, multiply.slots):
        for slot, values in zip(multiply.slots, by_register, strict=True):
            if slot is None:
                continue
            if whole:
                wide = values.reshape(run.shape)
            else:
                wide = np.zeros(run.shape, values.dtype)
                wide[lanes] = values.reshape(-1)
            dtype = run.program.dtypes[slot]
            run.put(slot, wide if wide.dtype == dtype else wide.view(dtype))


@contextmanager
def _writing(run: Run, chosen: Array, slots: Iterable[int | None]) -> Iterator[None]:
    """For a while the group is the chosen warpgroups (B, G), and others keep what `slots` hold for them."""
    lanes = lanes_of(run, chosen)
    before, protected = run.lanes, run.protected
    if (run.mask() & ~lanes).any():
        run.protected |= sum(1 << slot for slot in slots if slot is not None)
    run.lanes = lanes if before is not None or run.protected else None
    yield
    run.lanes, run.protected = before, protected


def carry(decoder: Decoder, op: Opcode, move: Step) -> Step:
    """A ``mov`` of an accumulator: what a compiler copies before it is there is copied again when it is."""
    target, source = op.instruction.operands
    if not isinstance(source, Register) or (to := decoder.destination(target)) is None:
        return move
    of = decoder.slot(source.name)

    def copy(run: Run, chosen: Array) -> None:
        with _writing(run, chosen, (to,)):
            run.hand_out((to,), (run.registers[of],))

    def step(run: Run) -> None:
        move(run)
        if run.products is None or not run.products.pending:
            return
        here = _warpgroups(run)
        latest = next(
            (p for p in reversed(run.products.pending) if of in p.slots and (p.waiting & here).any()), None
        )
        if latest is not None:
            again = Product(
                latest.index,
                latest.waiting & here,
                latest.group,
                frozenset({to}),
                lambda chosen: copy(run, chosen),
            )
            run.products.pending.append(again)

    return step


def _tell(run: Run, multiply: Multiply, given: Given, chosen: Array, made: bool) -> None:
    """Tell observers what the chosen warpgroups read from shared memory: each thread some chunks of it.

    They are told when the product is asked for and when it is `made`: it may be read at any time between.
    """
    for hear in run.on_product:
        hear(multiply.index, chosen, made, run.chunk)
    if not run.on_access:
        return
    operands = [(multiply.b, given.b)]
    if isinstance(multiply.a, Shared):
        operands.insert(0, (multiply.a, given.a))
    for operand, words in operands:
        pieces = operand.tile.height * operand.tile.width * operand.tile.itemsize // CHUNK
        for first in range(0, pieces, PIECES):
            count = min(PIECES, pieces - first)
            address = np.zeros((*chosen.shape, THREADS), np.int64)
            lanes = np.zeros(address.shape, bool)
            for word in np.unique(words[chosen]):
                mine = chosen & (words == word)
                chunks = _chunks_of(run, multiply, operand, int(word), mine).reshape(-1)
                address[mine, :count] = chunks[first : first + count] * CHUNK
                lanes[mine, :count] = True
            wide_address, wide_lanes = np.zeros(run.shape, np.int64), np.zeros(run.shape, bool)
            width = chosen.shape[1] * THREADS
            wide_address[:, :width] = address.reshape(len(address), -1)
            wide_lanes[:, :width] = lanes.reshape(len(lanes), -1)
            with run.only(wide_lanes):
                accesses.tell(run, multiply.index, "shared", "load", wide_address, CHUNK, [])


# ---- the instruction -----------------------------------------------------------------------------


def _multiply(decoder: Decoder, op: Opcode, index: int) -> Step:
    multiply = _read_multiply(decoder, op, index)

    slots = frozenset(multiply.slots)

    def step(run: Run) -> None:
        here = _warpgroups(run)
        if isinstance(multiply.a, Shared):
            a = _word(run, multiply, multiply.a.descriptor, "a matrix descriptor of A")
        else:
            a = _capture(run, multiply.a.registers)
        given = Given(
            a,
            _word(run, multiply, multiply.b.descriptor, "a matrix descriptor of B"),
            _word(run, multiply, multiply.adds, "a scale of D"),
            None if multiply.metadata is None else _capture(run, (multiply.metadata,))[..., 0],
        )
        _tell(run, multiply, given, here, made=False)
        products = _products_of(run)
        products.pending.append(
            Product(
                index,
                here,
                products.group,
                slots,
                lambda chosen: _finish(run, multiply, given, chosen),
            )
        )

    return step


def _read_multiply(decoder: Decoder, op: Opcode, index: int) -> Multiply:
    """The operands in the order in which the manual lists them."""
    shape, sparse = matrix_shape(op.instruction), "sp" in op.modifiers
    if shape is None or len(op.types) != 3:
        raise decoder.unsupported(op, "It has the types of D, A and B, such as m64n128k16.f32.f16.f16.")
    d_type, a_type, b_type = op.types
    try:
        check(*shape, d_type, a_type, b_type, sparse)
    except ValueError as error:
        raise decoder.unsupported(op, str(error)) from None
    d, a, b, *rest = op.instruction.operands
    metadata, selector = (rest.pop(0), _literal(rest.pop(0))) if sparse else (None, 0)
    ways = selectors(ELEMENTS[a_type].bits, columns_of_a(a_type))
    if not 0 <= selector < ways:
        raise decoder.unsupported(op, f"Its sparsity selector is {selector}, and must be less than {ways}.")
    adds, *scales = rest
    has_scales = not ELEMENTS[a_type].is_integer
    negates = tuple(_literal(scales.pop(0)) < 0 for _ in range(2)) if has_scales else (False, False)
    majors = [_literal(x) for x in scales] if a_type in TRANSPOSED else []
    transposed_a = bool(majors.pop(0)) if len(majors) > 1 else False
    transposed_b = bool(majors.pop(0)) if majors else False
    items = d.items if isinstance(d, Vector) else (d,)
    expected = shape.n // (4 if d_type == "f16" else 2)
    if len(items) != expected:
        raise decoder.unsupported(op, f"D takes {expected} registers, not {len(items)}.")
    return Multiply(
        index,
        shape.n,
        (d_type, a_type, b_type),
        _read_a(decoder, op, a, a_type, transposed_a),
        _shared(decoder, b, b_type, shape.n, shape.k, not transposed_b),
        tuple(decoder.destination(item) for item in items),
        tuple(decoder.source(item, I32 if d_type == "f16" else DTYPES[d_type]) for item in items),
        decoder.source(adds, BOOL),
        (negates[0], negates[1]),
        "satfinite" in op.modifiers,
        None if metadata is None else decoder.source(metadata, I32),
        selector,
    )


def _read_a(decoder: Decoder, op: Opcode, a: Operand, type_: str, transposed: bool) -> Shared | Held:
    width = columns_of_a(type_)
    if not isinstance(a, Vector):
        return _shared(decoder, a, type_, ROWS, width, not transposed)
    if len(a.items) != 4:
        raise decoder.unsupported(op, f"An A in registers takes 4 of them, not {len(a.items)}.")
    rows, columns = operand_places(ELEMENTS[type_].bits)
    places = np.empty((ROWS, width), np.int64)
    places[rows, columns] = np.arange(rows.size).reshape(rows.shape)
    return Held(tuple(decoder.source(item, I32) for item in a.items), places, ELEMENTS[type_].decode)


def _shared(decoder: Decoder, operand: Operand, type_: str, height: int, width: int, k_major: bool) -> Shared:
    element = ELEMENTS[type_]
    tile = Tile(height, width, element.bits // 8, k_major)
    return Shared(decoder.source(operand, I64), tile, element.decode)


def _literal(operand: Operand) -> int:
    assert isinstance(operand, Immediate), "PTX wants a literal here."
    return int(operand.value)


KINDS: dict[str, Builder] = {
    "mma_async": _multiply,
    "commit_group": _commit,
    "wait_group": _wait,
    "fence": _fence,
}


def _wgmma(decoder: Decoder, op: Opcode, index: int) -> Step | None:
    build = KINDS.get(op.instruction.parts[1])
    if build is None:
        raise decoder.unsupported(op)
    return build(decoder, op, index)


BUILDERS = {"wgmma": _wgmma}
