"""Matrices of 8, 6 and 4 bits since Blackwell: ``mma.sync`` with a ``kind::``, and how warps load and store
their bytes.

Numbers of 6 and of 4 bits are a byte each in registers where they may meet those of 8 bits: 6 bits at the
lower end of the byte, 4 bits in the middle of it. ``ldmatrix`` unpacks them from shared memory, where 16 of
them lie side by side, and puts them at the lower end. Block scales are bytes that some lanes of the warp hold
(PTX ISA, "Block scaling for mma.sync", "ldmatrix", "stmatrix").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpulab.simulator.ptx import Immediate, Operand, Vector

from . import accesses, matrix_steps, small_floats
from .clusters import own_offsets
from .executable import Step
from .matrix import ELEMENTS, mma_tables
from .matrix_steps import (
    LANE,
    SPARSE,
    accumulators,
    blocks_and_warps,
    contents,
    gather,
    hand_out,
    matrix_count,
    metadata_of,
    register_dtype,
    registers_of,
    rows_of,
    slots_of,
    tell_rows,
)
from .opcodes import MatrixShape, Opcode, matrix_shape
from .operands import Decoder
from .program import Source
from .run import Run
from .sparse import kept_columns, spread
from .steps import Builder
from .tensor_core_descriptors import ProductDescriptor
from .tensor_core_products import PADDED, decode, decode_scales, multiply_accumulate
from .tensor_core_products import Operand as Factor
from .types import I32, U32

Array = np.ndarray

OCTET = np.dtype("u1")
ROW = 16  # bytes of a row of a matrix in shared memory
# The name of a type in the sums, by its name in an opcode: where a byte holds each number, as Blackwell's
# shared memory names them.
IN_BYTES = {form: name for name, (form, _) in PADDED.items()} | {"e4m3": "e4m3", "e5m2": "e5m2"}


class Kind(NamedTuple):
    """A ``kind::`` of ``mma.sync``: its types of A and B, k, and the type of scales by their number."""

    types: tuple[str, ...]
    k: int
    scales: dict[int, tuple[str, ...]]


KINDS = {
    "kind::f8f6f4": Kind(tuple(IN_BYTES), 32, {}),
    "kind::mxf8f6f4": Kind(tuple(IN_BYTES), 32, {1: ("ue8m0",)}),
    "kind::mxf4": Kind(("e2m1",), 64, {2: ("ue8m0",)}),
    "kind::mxf4nvf4": Kind(("e2m1",), 64, {2: ("ue8m0",), 4: ("ue4m3", "ue8m0")}),
}
FEWEST_SCALES = {"kind::mxf8f6f4": 1, "kind::mxf4": 2}  # where the opcode does not say how many


def _decoder(type_: str, k: int) -> Callable[[Array], Array]:
    """From registers to numbers: a byte each, or, of a row of 64 numbers, half a byte."""
    if k == 64:
        return lambda words: decode(words.view(OCTET), type_)
    if type_ in ELEMENTS:
        return ELEMENTS[type_].decode
    shift = 2 if type_ == "e2m1" else 0
    table, last = small_floats.values(type_), 2 * small_floats.FORMS[type_].sign - 1
    return lambda words: table[words.view(OCTET) >> np.uint8(shift) & np.uint8(last)].astype(np.float64)


# ---- block scales --------------------------------------------------------------------------------


class Scales(NamedTuple):
    """The block scales of A or B: the register, the byte and the thread of four where they begin."""

    register: Source
    byte: Source
    thread: Source
    blocks: int
    type: str

    def of(self, run: Run, rows: int) -> Array:
        """(b, W, rows, blocks) as float64. Row r of A is in thread r // 8 of a pair of lanes, that of lane
        4·(r mod 8); a column of B in one lane of its four."""
        byte, thread = (_uniform(run, source) for source in (self.byte, self.thread))
        words = gather(run, [self.register])[..., 0].view(U32)
        row = np.arange(rows)
        lane = row % 8 * 4 + row // 8 + thread * (2 if rows > 8 else 1)
        octets = np.ascontiguousarray(words[..., lane]).view(OCTET).reshape(*words.shape[:-1], rows, 4)
        return decode_scales(octets[..., byte : byte + self.blocks], self.type)


def _uniform(run: Run, source: Source) -> int:
    """A number that is the same for all threads."""
    return int(source.value(run.registers).flat[0])


def _scales(decoder: Decoder, op: Opcode, operands: list[Operand], count: int, threads: int) -> Scales:
    """Take the operands of A's or B's block scales off the list. Raises UnsupportedInstruction."""
    word, place = operands.pop(0), operands.pop(0)
    assert isinstance(place, Vector), "PTX wants two numbers in braces here."
    for what, item, step, end in (("byte", place.items[0], count, 4), ("thread", place.items[1], 1, threads)):
        if isinstance(item, Immediate) and int(item.value) not in (allowed := range(0, end, step)):
            known = ", ".join(map(str, allowed))
            raise decoder.unsupported(op, f"Its {what} of block scales is {item.value}; there is {known}.")
    (register,) = registers_of(decoder, word, I32)
    byte, thread = (decoder.source(item, np.dtype("u2")) for item in place.items)
    return Scales(register, byte, thread, count, op.types[-1])


def _count_of_scales(decoder: Decoder, op: Opcode, name: str, kind: Kind) -> int:
    """How many block scales a row has. Raises UnsupportedInstruction where the kind has no such scales."""
    if not kind.scales:
        return 0
    said = next((int(m[-2]) for m in op.modifiers if m.startswith("scale_vec::")), FEWEST_SCALES.get(name, 0))
    if op.types[-1] not in kind.scales.get(said, ()) or "block_scale" not in op.modifiers:
        known = ", ".join(f"scale_vec::{n}X of {' or '.join(types)}" for n, types in kind.scales.items())
        raise decoder.unsupported(op, f"{name} has block_scale with {known}.")
    return said


# ---- products ------------------------------------------------------------------------------------


def _multiply(decoder: Decoder, op: Opcode, index: int) -> Step:
    name = next((m for m in op.modifiers if m.startswith("kind::")), None)
    if name is None:
        return matrix_steps.multiply(decoder, op, index)
    kind, sparse = KINDS.get(name), not SPARSE.isdisjoint(op.modifiers)
    if kind is None or len(op.types) != 4 + bool(kind.scales):
        raise decoder.unsupported(op)
    d_type, a_type, b_type, c_type = op.types[:4]
    if a_type not in kind.types or b_type not in kind.types or (sparse and kind.k == 64):
        raise decoder.unsupported(op, f"{name} multiplies {', '.join(kind.types)}; sparse, bytes alone.")
    m, n, k = 16, 8, kind.k * (2 if sparse else 1)
    if matrix_shape(op.instruction) != (m, n, k):
        raise decoder.unsupported(op, f"{name} has the shape m16n8k{k}.")
    bits = 4 if kind.k == 64 else 8
    tables, stored = mma_tables(m, n, k, bits), mma_tables(m, n, kind.k, bits).a
    d, *operands = op.instruction.operands
    a, b = (registers_of(decoder, operands.pop(0), I32) for _ in range(2))
    c = registers_of(decoder, operands.pop(0), register_dtype(c_type))
    if sparse:
        metadata, selector = metadata_of(decoder, op, MatrixShape(m, n, k), 8, *operands[:2])
        del operands[:2]
    count = _count_of_scales(decoder, op, name, kind)
    scales = [_scales(decoder, op, operands, count, threads) for threads in (2, 4)] if count else []
    of_a, of_b = (_decoder(type_, kind.k) for type_ in (a_type, b_type))
    names = (a_type, b_type) if kind.k == 64 else (IN_BYTES[a_type], IN_BYTES[b_type])
    product = ProductDescriptor(d_type, *names, m, n, k, scale_type=op.types[-1])
    slots = slots_of(decoder, d)

    def step(run: Run) -> None:
        x = of_a(gather(run, a)).reshape(*blocks_and_warps(run, a), -1).take(stored, -1)
        y = of_b(gather(run, b)).reshape(*blocks_and_warps(run, b), -1).take(tables.b, -1)
        z = accumulators(gather(run, c), c_type).reshape(*blocks_and_warps(run, c), -1).take(tables.c, -1)
        if sparse:
            words = gather(run, [metadata])[..., 0]
            x = spread(x, kept_columns(words, "e4m3", m, kind.k, selector))
        left, right = Factor(x), Factor(y)
        if scales:
            left, right = Factor(x, scales[0].of(run, m)), Factor(y, scales[1].of(run, n))
        wide = multiply_accumulate(left, right, z, product)
        fragments = wide.reshape(*wide.shape[:-2], m * n).take(tables.d, -1)
        hand_out(run, slots, contents(fragments, d_type))

    return step


# ---- matrices of bytes in shared memory ------------------------------------------------------------

# How 16 numbers lie in the 16 bytes of a row: bits of each.
PACKED = {"b8": 8, "b6x16_p32": 6, "b4x16_p64": 4}
EXAMPLES = "m8n8.b16; m16n16.trans.b8; and, unpacked, m8n16 and m16n16.trans.b8x16 of b6x16_p32 or b4x16_p64"


def _check_target(decoder: Decoder, op: Opcode) -> None:
    """Raise UnsupportedInstruction where the kernel's architecture moves matrices of halves alone."""
    if int(decoder.module.target.removeprefix("sm_").rstrip("af")) < 100:
        advice = "Only matrices of 8 × 8 elements of 16 bits are moved; others need 10.0."
        raise decoder.unsupported(op, advice)


def _load(decoder: Decoder, op: Opcode, index: int) -> Step:
    parts = op.instruction.parts
    if "m8n8" in parts:
        return matrix_steps.load_matrix(decoder, op, index)
    _check_target(decoder, op)
    packed = next((part for part in parts if part in PACKED), None)
    tall, count = "m16n16" in parts, matrix_count(op)
    if packed is None or tall != ("trans" in parts) or (tall and count > 2) or (packed == "b8" and not tall):
        raise decoder.unsupported(op, f"It moves the matrices {EXAMPLES}.")
    destination, source = op.instruction.operands
    slots = slots_of(decoder, destination)
    rows, each = (16, 2) if tall else (8, 1)
    if len(slots) != each * count:
        raise decoder.unsupported(op, f"It takes {each * count} registers, not {len(slots)}.")
    address = rows_of(decoder, op, source)
    bits = PACKED[packed]

    def step(run: Run) -> None:
        given = own_offsets(run, index, address(run.registers))
        tell_rows(run, index, "load", given, rows * count)
        for place, slot in enumerate(slots):
            matrix, half = divmod(place, each)
            starts = run.by_warp(given)[..., rows * matrix : rows * (matrix + 1)]
            word = np.zeros((1, 1), U32)
            for i in range(4):  # bytes of a register
                if tall:  # four rows of one column
                    row, column = LANE % 4 * 4 + i, LANE // 4 + 8 * half
                else:
                    row, column = LANE // 4, LANE % 4 * 4 + i
                octet = _number(run, index, starts[..., row], column, bits)
                word = word | octet.astype(U32) << np.uint32(8 * i)
            if slot is not None:
                run.put(slot, word.view(run.program.dtypes[slot]))

    return step


def _number(run: Run, index: int, start: Array, column: Array, bits: int) -> Array:
    """Number `column` (32,) of the rows that begin at `start` (b, W, 32), in the lower bits of a byte."""
    first = column * bits
    octets = []
    for at in (first // 8, np.minimum(first // 8 + 1, ROW - 1)) if bits < 8 else (column,):
        place = start + at
        (octet,) = accesses.load_shared(run, index, place.reshape(len(place), -1), OCTET, 1)
        octets.append(octet.astype(np.uint16))
    if bits == 8:
        return octets[0]
    shift = np.tile(first % 8, run.shape[1] // 32).astype(np.uint16)
    return (octets[0] | octets[1] << np.uint16(8)) >> shift & np.uint16((1 << bits) - 1)


def _store(decoder: Decoder, op: Opcode, index: int) -> Step:
    """``stmatrix`` of bytes: what lies in columns before is stored as rows of 16 bytes."""
    parts = op.instruction.parts
    if "m8n8" in parts:
        return matrix_steps.store_matrix(decoder, op, index)
    _check_target(decoder, op)
    if not {"m16n8", "trans", "b8"} <= set(parts):
        raise decoder.unsupported(op, "It moves the matrices m8n8.b16 and m16n8.trans.b8.")
    target, value = op.instruction.operands
    registers = registers_of(decoder, value, U32)
    address = rows_of(decoder, op, target)

    def step(run: Run) -> None:
        given = own_offsets(run, index, address(run.registers))
        tell_rows(run, index, "store", given, 8 * len(registers))
        for matrix, source in enumerate(registers):
            word = source.value(run.registers)
            starts = run.by_warp(given)[..., 8 * matrix : 8 * matrix + 8]
            for i in range(4):
                place = starts[..., LANE % 4 * 2 + i % 2] + LANE // 4 + i // 2 * 8
                part = (word >> np.uint32(8 * i)).astype(OCTET)
                accesses.store_window(run, index, "shared", place.reshape(len(place), -1), [part])

    return step


BUILDERS: dict[str, Builder] = {"mma": _multiply, "ldmatrix": _load, "stmatrix": _store}
