"""``tcgen05``: products that Blackwell's tensor cores leave in Tensor Memory, and copies to it.

One thread asks, for its block or for a pair of blocks (``cta_group::2``). `tensor_tasks` says when what it
asked for is done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from gpulab.simulator.ptx import Address, Immediate, Vector

from .errors import WrongMatrix, WrongTensorMemory
from .events import TensorProduct
from .executable import Step
from .opcodes import Opcode
from .operands import Decoder
from .run import Blame, Run
from .steps import Builder
from .swizzles import CHUNK
from .tensor_core_descriptors import (
    SCALED,
    TYPES,
    ProductDescriptor,
    SharedDescriptor,
    WrongDescriptorValue,
    decode_product,
    decode_shared,
    operand_addresses,
)
from .tensor_core_products import decode, decode_scales, itemsize, multiply_accumulate, result_lanes
from .tensor_memory import COLUMN, COLUMNS
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
    fields = multiply.descriptor.of(run, row, lane)
    try:
        product = decode_product(fields, multiply.kind, multiply.group)
    except WrongDescriptorValue as error:
        raise WrongMatrix(
            **blame,
            what=f"gives the instruction descriptor {fields:#010x}, which is wrong.",
            advice=str(error),
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
                b_all = b_all * _scales(
                    run, rows[0], scales[1], product.n, product, multiply.step, product.scale_b
                )
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

    _check_result(run, multiply, rows, d, product, blame)
    if not run.on_tensor_product:
        ask(run, row, lane, do)
        return
    try:
        asked = _event(run, multiply, rows, product, a, b, d)
    except WrongDescriptorValue as error:
        raise wrong(error) from None

    def do_and_tell() -> None:
        do()
        for hear in run.on_tensor_done:
            hear(asked)

    for hear in run.on_tensor_product:
        hear(asked)
    ask(run, row, lane, do_and_tell)


def _event(
    run: Run, multiply: Multiply, rows: list[int], product: ProductDescriptor, a: int, b: int, d: int
) -> TensorProduct:
    """A product as observers are told of it. Raises WrongDescriptorValue."""
    in_shared = isinstance(multiply.a, Given)
    operands = [(b, product.n // len(rows), product.b_type, product.k_major[1])]
    if in_shared:
        operands.append((a, product.m // len(rows), product.a_type, product.k_major[0]))
    reads = tuple(
        (row, _pieces(decode_shared(word), mn, product.k, type_, k_major))
        for word, mn, type_, k_major in operands
        for row in rows
    )
    _, columns = result_lanes(product.m, product.n, multiply.group)
    first = d & COLUMN
    bits = [8 * itemsize(t) // (2 if t == "e2m1" else 1) for t in (product.a_type, product.b_type)]
    nbytes = product.k * ((product.m if in_shared else 0) * bits[0] + product.n * bits[1]) // 8
    return TensorProduct(
        multiply.index,
        rows[0],
        product.m,
        product.n,
        product.k,
        nbytes,
        run.chunk,
        tuple(rows),
        reads,
        (first, first + int(columns.max())),
    )


@lru_cache(maxsize=1024)
def _pieces(descriptor: SharedDescriptor, mn: int, k: int, type_: str, k_major: bool) -> Array:
    """The offsets of the pieces of 16 bytes of shared memory that an operand lies in."""
    size = itemsize(type_)
    width = k // (2 if type_ == "e2m1" else 1) * size
    return np.unique(operand_addresses(descriptor, mn, width, size, k_major) // CHUNK) * CHUNK


def _check_result(
    run: Run, multiply: Multiply, rows: list[int], d: int, product: ProductDescriptor, blame: Blame
) -> None:
    memory = memory_of(run)
    _, columns = result_lanes(product.m, product.n, multiply.group)
    first, last = d & COLUMN, (d & COLUMN) + int(columns.max())
    for row in rows:
        if last >= COLUMNS or (memory.owner[row, first : last + 1] < 0).any():
            raise WrongTensorMemory(
                **blame,
                what=f"adds a product to columns {first} to {last} of Tensor Memory, "
                f"{allocated(memory, row)}.",
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
            f"The operand reaches up to byte {end:,} of shared memory, but the block has "
            f"{run.shared_bytes:,}. Check the start address and the two offsets, all in units of 16 bytes."
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
    column, given = address_of(decoder, target), word(decoder, source, I64)
    group = _group(op)

    def step(run: Run) -> None:
        for row, lane in askers(run):
            rows = blocks_of(run, index, row, lane, group)
            first, descriptor = column(run, row, lane) & COLUMN, given.of(run, row, lane)
            blame = run.blame(index, only(run, row, lane))
            ask(run, row, lane, partial(copy, run, rows, first, descriptor, blame))

    def copy(run: Run, rows: list[int], first: int, descriptor: int, blame: Blame) -> None:
        for row in rows:
            try:
                octets = _bytes(run, row, descriptor, height, width)
            except WrongDescriptorValue as error:
                raise WrongMatrix(
                    **blame, what="copies from a place that cannot be.", advice=str(error)
                ) from None
            words = np.ascontiguousarray(octets).view(np.uint32)  # (height, width / 4)
            columns = first + np.arange(width // 4)
            memory_of(run).words[row][lanes[:, :, None], columns] = words[:, None, :]

    return step


def _bytes(run: Run, row: int, descriptor: int, height: int, width: int) -> Array:
    addresses = operand_addresses(decode_shared(descriptor), height, width, 1, True)
    if int(addresses.max()) >= run.shared_bytes:
        raise WrongDescriptorValue(
            f"The source reaches up to byte {int(addresses.max()) + 1:,} of shared memory, but the block has "
            f"{run.shared_bytes:,}."
        )
    return run.shared[row][addresses]


KINDS: dict[str, Builder] = {**MEMORY_KINDS, "mma": _multiply, "cp": _copy, "commit": commit}


def _tcgen05(decoder: Decoder, op: Opcode, index: int) -> Step | None:
    build = KINDS.get(op.instruction.parts[1])
    if build is None:
        raise decoder.unsupported(op)
    return build(decoder, op, index)


BUILDERS = {"tcgen05": _tcgen05}
