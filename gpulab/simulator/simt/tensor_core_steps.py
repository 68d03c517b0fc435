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
from .steps import Builder
from .swizzles import CHUNK
from .tensor_core_descriptors import SCALED, TYPES, ProductDescriptor, decode_product, decode_shared
from .tensor_core_products import (
    PADDED,
    Operand,
    decode,
    decode_scales,
    decode_shared_memory,
    itemsize,
    multiply_accumulate,
    numbers,
    packed,
    result_columns,
    result_places,
    words,
)
from .tensor_memory import COLUMN, COLUMNS, LANES
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


def _multiply(decoder: Decoder, op: Opcode, index: int) -> Step:
    parts = op.instruction.parts
    kind = next((part[6:] for part in parts if part.startswith("kind::")), "")
    if kind not in TYPES or {"sp", "ws", "ashift"} & set(parts):
        raise decoder.unsupported(op, "Sparse, weight-stationary and shifted products are not simulated.")
    d, a, b, descriptor, *rest = op.instruction.operands
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
    height, half = product.m // multiply.group, product.n // multiply.group
    b = _tile(run, multiply.b.of(run, row, lane), half, product.k, product.b_type, product.k_major[1], blame)
    a: Tile | int
    if isinstance(multiply.a, Given):
        word = multiply.a.of(run, row, lane)
        a = _tile(run, word, height, product.k, product.a_type, product.k_major[0], blame)
    else:
        if product.a_type in PADDED:
            raise WrongMatrix(
                **blame,
                what="takes an A of 4- or 6-bit numbers with 8-bit rules from Tensor Memory.",
                advice="The simulator knows such an A in shared memory only.",
            )
        a = multiply.a(run, row, lane)
    scales = [scale(run, row, lane) & COLUMN for scale in multiply.scales]
    adds = bool(multiply.adds.of(run, row, lane))
    off = _switched_off([given.of(run, row, lane) for given in multiply.disabled])
    first = multiply.d(run, row, lane) & COLUMN
    last = first + result_columns(product.m, product.n, multiply.group) - 1
    _check_result(run, rows, first, last, blame)
    asked = TensorProduct(
        multiply.index,
        product.m,
        product.n,
        product.k,
        run.chunk,
        tuple(rows),
        tuple((r, tile.pieces) for tile in (b, a) if isinstance(tile, Tile) for r in rows),
        (first, last),
    )

    def do() -> None:
        sign_a, sign_b = (-1.0 if negates else 1.0 for negates in product.negates)
        right = Operand(sign_b * np.concatenate([_shared(run, r, b) for r in rows]))
        if scales:
            factors = _scales(run, rows[0], scales[1], product.n, product, multiply.step, product.scale_b)
            right = right._replace(scales=factors)
        lanes, columns = result_places(product.m, product.n, multiply.group)
        for place, r in enumerate(rows):
            left = Operand(
                sign_a * (_shared(run, r, a) if isinstance(a, Tile) else _held(run, r, a, product, lanes))
            )
            if scales:
                factors = _scales(run, r, scales[0], height, product, multiply.step, product.scale_a)
                left = left._replace(scales=factors)
            memory = memory_of(run).words[r]
            held = memory[lanes, first + columns]
            c = numbers(held, product.d_type) * 2.0**-multiply.shift if adds else np.zeros(held.shape)
            new = words(multiply_accumulate(left, right, c, product))
            memory[lanes, first + columns] = np.where(off[place * LANES + lanes], held, new)
        for hear in run.on_tensor_done:
            hear(asked)

    for hear in run.on_tensor_product:
        hear(asked)
    ask(run, row, lane, do)


def _described(multiply: Multiply, word: int, blame: Blame) -> ProductDescriptor:
    """What an instruction descriptor says. Raises WrongMatrix."""
    try:
        product = decode_product(word, multiply.kind, multiply.group)
    except ValueError as error:
        raise WrongMatrix(
            **blame, what=f"gives the instruction descriptor {word:#010x}, which is wrong.", advice=str(error)
        ) from None
    if product.sparse:
        raise WrongMatrix(
            **blame, what="asks for a sparse product with an instruction for dense ones.", advice="Use .sp."
        )
    return product


def _switched_off(masks: list[int]) -> Array:
    """For each lane of both blocks, (256,), whether it keeps what it holds. `masks` have 32 lanes each."""
    bits = np.zeros(2 * LANES // 32, np.uint32)
    bits[: len(masks)] = masks
    return np.unpackbits(bits.view(np.uint8), bitorder="little").astype(bool)


def _check_result(run: Run, rows: list[int], first: int, last: int, blame: Blame) -> None:
    memory = memory_of(run)
    for row in rows:
        if last >= COLUMNS or (memory.owner[row, first : last + 1] < 0).any():
            raise WrongTensorMemory(
                **blame,
                what=f"adds a product to columns {first} to {last} of Tensor Memory, "
                f"{allocated(memory, row)}.",
                advice="D takes a column for each of its columns: allocate as many.",
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


def _held(run: Run, row: int, address: int, product: ProductDescriptor, lanes: Array) -> Array:
    """An A in Tensor Memory, as float64: each row in the lane of its row of D, elements packed into words."""
    first = address & COLUMN
    count = product.k * itemsize(product.a_type) // 4
    found = np.ascontiguousarray(memory_of(run).words[row][lanes[:, 0], first : first + count])
    return decode(found.view(np.uint8), product.a_type)


def _scales(
    run: Run, row: int, first: int, mn: int, product: ProductDescriptor, step: int, byte: int
) -> Array:
    """The block scales of an operand, (mn, blocks along k).

    Those of row r are in lane r mod 32 and column r // 32 behind the `first`, a byte for each block.
    """
    rows = np.arange(mn)
    held = np.ascontiguousarray(memory_of(run).words[row][rows % WARP, first + rows // WARP])
    octets = held.view(np.uint8).reshape(mn, 4)
    return decode_scales(octets[:, byte : byte + product.k // step], product.scale_type)


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
    column, given = address_of(decoder, target), word(decoder, source, I64)
    group = _group(op)

    def step(run: Run) -> None:
        for row, lane in askers(run):
            rows = blocks_of(run, index, row, lane, group)
            first, blame = column(run, row, lane) & COLUMN, run.blame(index, only(run, row, lane))
            tile = _tile(run, given.of(run, row, lane), height, width, "u8", True, blame)
            ask(run, row, lane, partial(copy, run, rows, first, tile))

    def copy(run: Run, rows: list[int], first: int, tile: Tile) -> None:
        columns = first + np.arange(width // 4)
        for row in rows:
            moved = np.ascontiguousarray(run.shared[row][tile.octets]).view(np.uint32)  # (height, width / 4)
            memory_of(run).words[row][lanes[:, :, None], columns] = moved[:, None, :]

    return step


KINDS: dict[str, Builder] = {**MEMORY_KINDS, "mma": _multiply, "cp": _copy, "commit": commit}


def _tcgen05(decoder: Decoder, op: Opcode, index: int) -> Step | None:
    build = KINDS.get(op.instruction.parts[1])
    if build is None:
        raise decoder.unsupported(op)
    return build(decoder, op, index)


BUILDERS = {"tcgen05": _tcgen05}
