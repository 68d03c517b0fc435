"""``tcgen05``: products that Blackwell's tensor cores leave in Tensor Memory, and copies to it.

One thread asks, for its block or for a pair of blocks (``cta_group::2``). `tensor_tasks` says when what it
asked for is done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from gpulab.simulator.ptx import Address, Immediate, Vector

from .errors import WrongMatrix, WrongTensorMemory
from .events import TensorProduct
from .executable import Step
from .matrix_descriptors import operand_addresses
from .opcodes import Opcode
from .operands import Decoder
from .run import Blame, Run
from .sparse import spread
from .steps import Builder
from .swizzles import CHUNK
from .tensor_core_descriptors import SCALED, TYPES, ProductDescriptor, decode_product, decode_shared
from .tensor_core_products import (
    Operand,
    decode,
    decode_scales,
    decode_shared_memory,
    has_halves_apart,
    in_byte,
    itemsize,
    multiply_accumulate,
    numbers,
    packed,
    padded_codes,
    result_columns,
    result_places,
    words,
)
from .tensor_core_sparsity import ROWS as SPARSE_ROWS
from .tensor_core_sparsity import kept_columns, selected
from .tensor_memory import COLUMN, COLUMNS, LANE_BIT, LANES
from .tensor_memory_steps import KINDS as MEMORY_KINDS
from .tensor_memory_steps import allocated, memory_of, only
from .tensor_tasks import Given, address_of, ask, askers, blocks_of, commit, word
from .types import BOOL, I64, U32
from .warps import WARP

Array = np.ndarray


def _group(op: Opcode) -> int:
    """1 or 2: how many blocks take part."""
    return 2 if "cta_group::2" in op.instruction.parts else 1


# ---- products ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Multiply:
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
    stationary: bool  # .ws
    metadata: Callable[[Run, int, int], int] | None  # .sp
    no_columns: Given | None  # which columns of B are zeros
    shifts: bool  # .ashift: the rows of A move when the product is done


def _multiply(decoder: Decoder, op: Opcode, index: int) -> Step:
    parts = op.instruction.parts
    kind = next((part[6:] for part in parts if part.startswith("kind::")), "")
    stationary, sparse = "ws" in parts, "sp" in parts
    if kind not in TYPES or (sparse and kind in SCALED):
        raise decoder.unsupported(op, "Sparse products with block scales are not simulated.")
    d, a, b, *rest = op.instruction.operands
    metadata = address_of(decoder, rest.pop(0)) if sparse else None
    descriptor = rest.pop(0)
    scales: tuple[Callable[[Run, int, int], int], ...] = ()
    if kind in SCALED:
        scales = tuple(address_of(decoder, rest.pop(0)) for _ in range(2))
    disabled: tuple[Given, ...] = ()
    if rest and isinstance(rest[0], Vector):
        disabled = tuple(word(decoder, item, U32) for item in rest[0].items)
        rest.pop(0)
    adds = Given(decoder.source(rest.pop(0), BOOL), 1)
    shift = int(rest[0].value) if rest and isinstance(rest[0], Immediate) else 0
    multiply = Multiply(
        index,
        kind,
        _group(op),
        address_of(decoder, d),
        address_of(decoder, a) if isinstance(a, Address) else word(decoder, a, I64),
        word(decoder, b, I64),
        word(decoder, descriptor, U32),
        disabled,
        adds,
        shift,
        scales,
        _numbers_per_scale(kind, parts),
        stationary,
        metadata,
        word(decoder, rest[0], I64) if stationary and rest else None,
        "ashift" in parts,
    )

    def step(run: Run) -> None:
        for row, lane in askers(run):
            _ask_for_product(run, multiply, row, lane)

    return step


def _numbers_per_scale(kind: str, parts: tuple[str, ...]) -> int:
    if "block16" in parts or "scale_vec::4X" in parts:
        return 16
    return 32 if kind in SCALED else 0


def _ask_for_product(run: Run, multiply: Multiply, row: int, lane: int) -> None:
    rows = blocks_of(run, multiply.index, row, lane, multiply.group)
    blame = run.blame(multiply.index, only(run, row, lane))
    product = _described(multiply, multiply.descriptor.of(run, row, lane), blame)
    _check_parts(run, multiply, product, row, lane, blame)
    height, half = product.m // multiply.group, product.n // multiply.group
    b = _tile(run, multiply.b.of(run, row, lane), half, product.k, product.b_type, product.k_major[1], blame)
    a: Tile | int
    if isinstance(multiply.a, Given):
        word = multiply.a.of(run, row, lane)
        a = _tile(run, word, height, product.stored, product.a_type, product.k_major[0], blame)
    else:
        a = multiply.a(run, row, lane)
    scales = [scale(run, row, lane) & COLUMN for scale in multiply.scales]
    adds = bool(multiply.adds.of(run, row, lane))
    off = _switched_off([given.of(run, row, lane) for given in multiply.disabled])
    first = multiply.d(run, row, lane) & COLUMN
    last = first + result_columns(product.m, product.n, multiply.group, multiply.stationary) - 1
    advice = "D takes a column for each of its columns: allocate as many."
    _check_columns(run, rows, first, last, "adds a product to", advice, blame)
    kept = 0 if multiply.metadata is None else multiply.metadata(run, row, lane) & COLUMN
    asked = TensorProduct(
        multiply.index,
        product.m,
        product.n,
        product.stored,
        run.chunk,
        tuple(rows),
        tuple((r, tile.pieces) for tile in (b, a) if isinstance(tile, Tile) for r in rows),
        (first, last),
        None if isinstance(a, Tile) else _held_columns(a, product),
    )

    def do() -> None:
        sign_a, sign_b = (-1.0 if negates else 1.0 for negates in product.negates)
        right = Operand(sign_b * np.concatenate([_shared(run, r, b) for r in rows]))
        if scales:
            parts = 1 + has_halves_apart(product.m, multiply.group)
            factors = _scales(
                run, rows[0], scales[1], product.n, product, multiply.step, product.scale_b, parts
            )
            right = right._replace(scales=factors)
        lanes, columns = result_places(product.m, product.n, multiply.group, multiply.stationary)
        for place, r in enumerate(rows):
            memory = memory_of(run).words[r]
            held = memory[lanes, first + columns]
            c = numbers(held, product.d_type) * 2.0**-multiply.shift if adds else np.zeros(held.shape)
            new = np.empty_like(held)
            for part in _parts(lanes, isinstance(a, Tile), multiply.stationary):
                if isinstance(a, Tile):
                    values = _shared(run, r, a)
                else:
                    values = _held(run, r, a, product, lanes[:, part])
                if multiply.metadata is not None:
                    values = _spread(run, r, values, selected(kept, product.selector), product)
                left = Operand(sign_a * values)
                if scales:
                    factors = _scales(run, r, scales[0], height, product, multiply.step, product.scale_a)
                    left = left._replace(scales=factors)
                of_b = right if part == slice(None) else Operand(right.values[part])
                new[:, part] = words(multiply_accumulate(left, of_b, c[:, part], product))
            memory[lanes, first + columns] = np.where(off[place * LANES + lanes], held, new)
            if multiply.shifts and not isinstance(a, Tile):
                for lane in range(0, LANES, WARP):
                    _shift_rows(run, r, lane, _held_columns(a, product)[0])
        for hear in run.on_tensor_done:
            hear(asked)

    for hear in run.on_tensor_product:
        hear(asked)
    ask(run, row, lane, do)


def _described(multiply: Multiply, word: int, blame: Blame) -> ProductDescriptor:
    """What an instruction descriptor says. Raises WrongMatrix."""
    try:
        product = decode_product(word, multiply.kind, multiply.group, multiply.stationary)
    except ValueError as error:
        raise WrongMatrix(
            **blame, what=f"gives the instruction descriptor {word:#010x}, which is wrong.", advice=str(error)
        ) from None
    if product.sparse != (multiply.metadata is not None):
        asked, other = ("sparse", "dense") if product.sparse else ("dense", "sparse")
        advice = (
            "Use .sp." if product.sparse else "Set bit 2 of the instruction descriptor, or leave out .sp."
        )
        raise WrongMatrix(
            **blame, what=f"asks for a {asked} product with an instruction for {other} ones.", advice=advice
        )
    return product


def _check_parts(
    run: Run, multiply: Multiply, product: ProductDescriptor, row: int, lane: int, blame: Blame
) -> None:
    """Raise WrongMatrix for what the simulator does not know of sparse and weight-stationary products."""
    if product.sparse and product.m // multiply.group != SPARSE_ROWS:
        raise WrongMatrix(
            **blame,
            what=f"multiplies a sparse A of {product.m // multiply.group} rows in each block.",
            advice=f"The simulator knows where the metadata of {SPARSE_ROWS} rows lie, and no others.",
        )
    if product.sparse and product.selector > 1:
        raise WrongMatrix(
            **blame,
            what=f"gives the sparsity selector {product.selector}.",
            advice="Bits 0 and 1 of the instruction descriptor say which of two columns has metadata.",
        )
    if multiply.no_columns is not None and multiply.no_columns.of(run, row, lane):
        raise WrongMatrix(
            **blame,
            what="gives a zero-column mask.",
            advice="The simulator knows the mask 0, which leaves all columns of B as they are.",
        )


def _parts(lanes: Array, is_shared: bool, stationary: bool) -> list[slice]:
    """The columns of D that one A serves. With ``.ws`` an A in Tensor Memory is there once for each part of
    the columns, in the lanes of that part of D."""
    if is_shared or not stationary:
        return [slice(None)]
    starts = np.flatnonzero(np.diff(lanes[0], prepend=-1))
    return [slice(int(a), int(b)) for a, b in zip(starts, [*starts[1:], lanes.shape[1]], strict=True)]


def _spread(run: Run, row: int, values: Array, column: int, product: ProductDescriptor) -> Array:
    """The full A of a sparse one, by the metadata of that column of Tensor Memory."""
    found = memory_of(run).words[row][:, np.minimum(column + np.arange(2), COLUMNS - 1)]
    return spread(values, kept_columns(found, product.a_type, product.k))


def _switched_off(masks: list[int]) -> Array:
    """For each lane of both blocks, (256,), whether it keeps what it holds. `masks` have 32 lanes each."""
    bits = np.zeros(2 * LANES // 32, np.uint32)
    bits[: len(masks)] = masks
    return np.unpackbits(bits.view(np.uint8), bitorder="little").astype(bool)


def _check_columns(
    run: Run, rows: list[int], first: int, last: int, does: str, advice: str, blame: Blame
) -> None:
    """Raise WrongTensorMemory unless all blocks have allocated the columns."""
    memory = memory_of(run)
    for row in rows:
        if last >= COLUMNS or (memory.owner[row, first : last + 1] < 0).any():
            raise WrongTensorMemory(
                **blame,
                what=f"{does} columns {first} to {last} of Tensor Memory, {allocated(memory, row)}.",
                advice=advice,
            )


# ---- operands ------------------------------------------------------------------------------------


class Tile(NamedTuple):
    """An operand in the shared memory of a block: the offsets of its bytes (rows, bytes), and those of the
    pieces of 16 bytes in which they lie."""

    type: str
    octets: Array
    pieces: Array


@lru_cache(maxsize=256)
def _places(word: int, mn: int, k: int, type_: str, k_major: bool) -> Tile:
    """What a descriptor names. Raises ValueError."""
    size = itemsize(type_)
    addresses = operand_addresses(decode_shared(word), mn, k // packed(type_), size, k_major)
    octets = (addresses[..., None] + np.arange(size)).reshape(mn, -1)
    return Tile(type_, octets, np.unique(addresses // CHUNK) * CHUNK)


def _tile(run: Run, word: int, mn: int, k: int, type_: str, k_major: bool, blame: Blame) -> Tile:
    """`_places`, all of them in the block's shared memory. Raises WrongMatrix."""
    try:
        tile = _places(word, mn, k, type_, k_major)
        end = int(tile.octets.max()) + 1
        if end > run.shared_bytes:
            raise ValueError(
                f"The operand reaches up to byte {end:,} of shared memory, but the block has "
                f"{run.shared_bytes:,}. Check the start address and the two offsets; all count 16 bytes."
            )
    except ValueError as error:
        raise WrongMatrix(
            **blame, what="names an operand in shared memory that cannot be.", advice=str(error)
        ) from None
    return tile


def _shared(run: Run, row: int, tile: Tile) -> Array:
    """The elements of an operand in the shared memory of one block, as float64."""
    return decode_shared_memory(run.shared[row], tile.octets, tile.type)


def _held_columns(address: int, product: ProductDescriptor) -> tuple[int, int]:
    """The first and the last column of an A in Tensor Memory."""
    first = address & COLUMN
    return first, first + product.stored * itemsize(product.a_type) // 4 // packed(product.a_type) - 1


def _held(run: Run, row: int, address: int, product: ProductDescriptor, lanes: Array) -> Array:
    """An A in Tensor Memory, as float64: each row in the lane of its row of D, elements packed into words."""
    first = address & COLUMN
    count = product.stored * itemsize(product.a_type) // 4
    found = np.ascontiguousarray(memory_of(run).words[row][lanes[:, 0], first : first + count])
    return decode(found.view(np.uint8), product.a_type)


def _scales(
    run: Run, row: int, first: int, mn: int, product: ProductDescriptor, step: int, byte: int, parts: int = 1
) -> Array:
    """The block scales of an operand, (mn, blocks along k).

    Those of row r are in lane r mod 32 and column r // 32 behind the `first`, a byte for each block. Where an
    operand has two `parts`, the second is in the lanes of warp 2, as those of ``tcgen05.cp.warpx2::01_23``.
    PTX leaves this open; NVIDIA's example of a pair with 128 rows does it so.
    """
    part, rows = np.divmod(np.arange(mn), mn // parts)
    lanes = part * (LANES // 2) + rows % WARP
    held = np.ascontiguousarray(memory_of(run).words[row][lanes, first + rows // WARP])
    octets = held.view(np.uint8).reshape(mn, 4)
    return decode_scales(octets[:, byte : byte + product.k // step], product.scale_type)


# ---- copies --------------------------------------------------------------------------------------

# (rows of shared memory, bytes of a row, lanes that each row reaches) by the shape's name.
_ROW = np.arange(64)[:, None]
FOUR_ROWS = "4x256b"  # one for each warp: the lane of the address is that of each warp's row
COPIES = {
    "64x128b.warpx2::02_13": (64, 16, _ROW + np.array([0, 64])),
    "64x128b.warpx2::01_23": (64, 16, _ROW + _ROW // 32 * 32 + np.array([0, 32])),
    "32x128b.warpx4": (32, 16, np.arange(32)[:, None] + 32 * np.arange(4)),
    "128x256b": (128, 32, np.arange(128)[:, None]),
    "128x128b": (128, 16, np.arange(128)[:, None]),
    FOUR_ROWS: (4, 32, WARP * np.arange(4)[:, None]),
}

# What ``.b8x16`` unpacks: 16 numbers that lie side by side become a byte each.
UNPACKED = {"b4x16_p64": "e2m1_p64", "b6x16_p32": "e2m3_p32"}


def _copy(decoder: Decoder, op: Opcode, index: int) -> Step:
    parts = set(op.instruction.parts)  # in any order: Triton writes .warpx4.32x128b
    name = next((name for name in COPIES if parts.issuperset(name.split("."))), None)
    if name is None:
        raise decoder.unsupported(op, "The simulator copies the shapes " + ", ".join(COPIES) + ".")
    unpacked = next((UNPACKED[part] for part in op.instruction.parts if part in UNPACKED), None)
    height, width, lanes = COPIES[name]
    target, source = op.instruction.operands
    address, given = address_of(decoder, target), word(decoder, source, I64)
    group = _group(op)

    def step(run: Run) -> None:
        for row, lane in askers(run):
            rows = blocks_of(run, index, row, lane, group)
            at, blame = address(run, row, lane), run.blame(index, only(run, row, lane))
            tile = _tile(run, given.of(run, row, lane), height, width, "u8", True, blame)
            further = at >> LANE_BIT & WARP - 1 if name == FOUR_ROWS else 0
            ask(run, row, lane, partial(copy, run, rows, further, at & COLUMN, tile))

    def copy(run: Run, rows: list[int], further: int, first: int, tile: Tile) -> None:
        columns = first + np.arange(width // 4)
        for row in rows:
            octets = run.shared[row][tile.octets]
            if unpacked is not None:
                octets = in_byte(padded_codes(run.shared[row], tile.octets, unpacked), unpacked)
            moved = np.ascontiguousarray(octets).view(np.uint32)  # (height, width / 4)
            memory_of(run).words[row][further + lanes[:, :, None], columns] = moved[:, None, :]

    return step


# ---- rows that move ------------------------------------------------------------------------------

SHIFTED = 8  # columns of 32 bytes in all


def _shift_rows(run: Run, row: int, lane: int, column: int) -> None:
    """Each of 32 lanes gets the 32 bytes of the next one, and the last keeps its own.

    The manual says "down", and no more. NVIDIA's example of ``.ashift`` (CUTLASS, CuTe DSL's experimental
    primitives, 1cta_mma_a_from_tmem.py) says what a B200 does.
    """
    words = memory_of(run).words[row]
    part = slice(column, column + SHIFTED)
    words[lane : lane + WARP - 1, part] = words[lane + 1 : lane + WARP, part].copy()


def _shift(decoder: Decoder, op: Opcode, index: int) -> Step:
    (where,) = op.instruction.operands
    address, group = address_of(decoder, where), _group(op)

    def step(run: Run) -> None:
        for row, lane in askers(run):
            rows = blocks_of(run, index, row, lane, group)
            at = address(run, row, lane)
            first, column = at >> LANE_BIT, at & COLUMN
            blame = run.blame(index, only(run, row, lane))
            if first % WARP or first >= LANES:
                raise WrongTensorMemory(
                    **blame,
                    what=f"shifts rows of Tensor Memory from lane {first} on.",
                    advice="The lane of the address is that of a warp: 0, 32, 64 or 96.",
                )
            _check_columns(
                run, rows, column, column + SHIFTED - 1, "shifts", "A shift takes 8 columns.", blame
            )
            ask(run, row, lane, partial(shift, run, rows, first, column))

    def shift(run: Run, rows: list[int], lane: int, column: int) -> None:
        for row in rows:
            _shift_rows(run, row, lane, column)

    return step


KINDS: dict[str, Builder] = {
    **MEMORY_KINDS,
    "mma": _multiply,
    "cp": _copy,
    "shift": _shift,
    "commit": commit,
}


def _tcgen05(decoder: Decoder, op: Opcode, index: int) -> Step | None:
    build = KINDS.get(op.instruction.parts[1])
    if build is None:
        raise decoder.unsupported(op)
    return build(decoder, op, index)


BUILDERS = {"tcgen05": _tcgen05}
