"""Steps of the tensor-core instructions: fragments gathered from a warp's lanes, multiplied, and handed
back."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from gpulab.simulator.ptx import Immediate, Operand, Vector

from . import accesses
from .clusters import own_offsets
from .errors import Misaligned
from .events import Access
from .executable import Step
from .matrix import ELEMENTS, Element, matrix_product, mma_tables, wmma_tables
from .memory import SHARED_WINDOW
from .opcodes import MatrixShape, Opcode, matrix_shape
from .operands import Decoder
from .program import Source
from .run import Run
from .sparse import kept_columns, selectors, spread
from .steps import space_of
from .types import DTYPES, I32, I64, U32, widened

Array = np.ndarray
LANE = np.arange(32)
SPARSE = {"sp", "sp::ordered_metadata"}  # marks of a matrix operation whose A is sparse
# Elements whose matrices start at 32 bytes, rows at 16 (CUDA Programming Guide, "Warp Matrix Functions").
ALIGNED = ("f16", "bf16", "tf32", "f32")


# ---- fragments ------------------------------------------------------------------------------------


def registers_of(decoder: Decoder, operand: Operand, dtype: np.dtype) -> list[Source]:
    items = operand.items if isinstance(operand, Vector) else (operand,)
    return [decoder.source(item, dtype) for item in items]


def slots_of(decoder: Decoder, operand: Operand) -> list[int | None]:
    items = operand.items if isinstance(operand, Vector) else (operand,)
    return [decoder.destination(item) for item in items]


def gather(run: Run, registers: list[Source]) -> Array:
    """(b, W, 32, registers), contiguous, so that a view splits packed registers into elements."""
    values = [source.value(run.registers) for source in registers]
    rows = max(v.shape[0] for v in values)
    wide = [widened(v, (rows, run.shape[1])) for v in values]
    return np.stack(wide, axis=-1).reshape(rows, -1, 32, len(values))


def hand_out(run: Run, slots: list[int | None], values: Array) -> None:
    """values (b, W, 32, registers) → one register each, in the register's own type."""
    for i, slot in enumerate(slots):
        if slot is not None:
            dtype = run.program.dtypes[slot]
            flat = np.ascontiguousarray(values[..., i]).reshape(values.shape[0], -1)
            run.put(slot, flat if flat.dtype == dtype else flat.view(dtype))


def register_dtype(type_: str) -> np.dtype:
    """How a fragment's registers are read: whole floats as they are, all packed elements as 32-bit words."""
    return DTYPES[type_] if type_ in ("f64", "f32", "s32") else I32


def accumulators(values: Array, type_: str) -> Array:
    """Register contents (…, registers) → accumulator elements (…, elements)."""
    if type_ == "f16":
        return values.view(np.float16).astype(np.float64)
    return values.astype(np.int64 if type_ == "s32" else np.float64)


def contents(result: Array, type_: str) -> Array:
    """Elements (…, elements) → register contents."""
    return np.ascontiguousarray(result).view(I32) if type_ == "f16" else result


# ---- mma ------------------------------------------------------------------------------------------


def multiply(decoder: Decoder, op: Opcode, index: int) -> Step:
    shape, sparse = matrix_shape(op.instruction), not SPARSE.isdisjoint(op.modifiers)
    if shape is None or len(op.types) != 4:
        raise decoder.unsupported(op)
    d_type, a_type, b_type, c_type = op.types
    known = a_type in ELEMENTS and b_type in ELEMENTS and d_type in ("f16", "f32", "f64", "s32")
    if not known or (a_type == "f16" and shape == (8, 8, 4)):
        raise decoder.unsupported(op, "This shape or type of matrix operation is not simulated.")
    m, n, k = shape
    element, other = ELEMENTS[a_type], ELEMENTS[b_type]
    tables = mma_tables(m, n, k, element.bits)
    d, *operands = op.instruction.operands
    stored = tables.a
    if sparse:
        stored = mma_tables(m, n, k // 2, element.bits).a
        metadata, selector = metadata_of(decoder, op, shape, element.bits, *operands[3:])
    a, b = (
        registers_of(decoder, o, register_dtype(t)) for o, t in zip(operands, (a_type, b_type), strict=False)
    )
    c = registers_of(decoder, operands[2], register_dtype(c_type))
    slots = slots_of(decoder, d)
    target, result = decoder.module.target, np.dtype({"s32": "i4"}.get(d_type, f"f{_bytes(d_type)}"))
    saturates = "satfinite" in op.modifiers
    depth = 256 // element.bits * (2 if sparse else 1)  # columns that a tensor core takes at once

    def step(run: Run) -> None:
        x, y = in_order(run, a, element, stored), in_order(run, b, other, tables.b)
        z = accumulators(gather(run, c), c_type).reshape(*blocks_and_warps(run, c), -1).take(tables.c, -1)
        if sparse:
            x = spread(x, kept_columns(gather(run, [metadata])[..., 0], a_type, m, k // 2, selector))
        wide = matrix_product(x, y, z, (element, other), result, target, depth, saturates)
        fragments = wide.reshape(*wide.shape[:-2], m * n).take(tables.d, -1)
        hand_out(run, slots, contents(fragments, d_type))

    return step


def in_order(run: Run, registers: list[Source], element: Element, places: Array) -> Array:
    """(b, W, rows, columns): the matrix of each warp, whose elements are at these places among those of its
    lanes. They are decoded last, because as bits they are small and quick to put in order."""
    words = gather(run, registers).view(f"u{element.bits // 8}")
    return element.decode(words.reshape(*blocks_and_warps(run, registers), -1).take(places, -1))


def metadata_of(
    decoder: Decoder, op: Opcode, shape: MatrixShape, bits: int, word: Operand, selector: Operand
) -> tuple[Source, int]:
    """The register that says which columns of a sparse A are kept, and whose of them count."""
    if (shape.m, shape.n) != (16, 8) or shape.k * bits not in (256, 512) or bits > 32:
        raise decoder.unsupported(op, "A sparse A has 16 rows of 32 or 64 bytes, the zeros counted.")
    assert isinstance(selector, Immediate)
    chosen, ways = int(selector.value), selectors(bits, shape.k // 2)
    if not 0 <= chosen < ways:
        raise decoder.unsupported(op, f"Its sparsity selector is {chosen}, and must be less than {ways}.")
    return decoder.source(word, I32), chosen


def _bytes(type_: str) -> int:
    return int(type_[1:]) // 8


def blocks_and_warps(run: Run, registers: list[Source]) -> tuple[int, int]:
    """(blocks, warps) of the gathered registers."""
    rows = max(run.registers[source.slot].shape[0] for source in registers)
    return rows, run.shape[1] // 32


# ---- ldmatrix, stmatrix -----------------------------------------------------------------------------


def matrix_count(op: Opcode) -> int:
    return next((int(m[1:]) for m in op.modifiers if re.fullmatch(r"x[124]", m)), 1)


def _row_places(run: Run, address: Array, matrix: int, transposed: bool) -> list[Array]:
    """Byte offsets (b, T) of what each lane holds of matrix number `matrix`: one 4-byte word, or two
    halves."""
    rows = run.by_warp(address)[..., 8 * matrix : 8 * matrix + 8]
    if transposed:
        places = [rows[..., (LANE % 4) * 2 + i] + (LANE // 4) * 2 for i in range(2)]
    else:
        places = [rows[..., LANE // 4] + (LANE % 4) * 4]
    return [p.reshape(p.shape[0], -1) for p in places]


def tell_rows(run: Run, index: int, kind: str, address: Array, rows: int) -> None:
    """Each of the `rows` of all matrices is 16 bytes, its address given by one lane."""
    if run.on_access:
        giving = np.tile(rows > LANE, run.shape[1] // 32)[None, :]
        lanes = giving if run.lanes is None else giving & run.lanes
        instruction = run.program.instructions[index]
        access = Access(index, instruction, "shared", kind, address, 16, lanes, run.chunk, [])
        for hear in run.on_access:
            hear(access)


def rows_of(decoder: Decoder, op: Opcode, operand: Operand) -> Callable[[list[Array]], Array]:
    """Where each lane's row of 16 bytes is in shared memory."""
    address = decoder.address(operand)
    if space_of(op) == "shared":
        return address
    return lambda registers: address(registers) - SHARED_WINDOW


def load_matrix(decoder: Decoder, op: Opcode, index: int) -> Step:
    destination, source = op.instruction.operands
    slots = slots_of(decoder, destination)
    address = rows_of(decoder, op, source)
    count, transposed = matrix_count(op), "trans" in op.modifiers

    def step(run: Run) -> None:
        given = own_offsets(run, index, address(run.registers))
        tell_rows(run, index, "load", given, 8 * count)
        for matrix, slot in enumerate(slots):
            places = _row_places(run, given, matrix, transposed)
            if transposed:
                low, high = (
                    accesses.load_shared(run, index, p, np.dtype("u2"), 1)[0].astype(U32) for p in places
                )
                word = low | high << np.uint32(16)
            else:
                word = accesses.load_shared(run, index, places[0], U32, 1)[0]
            if slot is not None:
                run.put(slot, word.view(run.program.dtypes[slot]))

    return step


def store_matrix(decoder: Decoder, op: Opcode, index: int) -> Step:
    target, value = op.instruction.operands
    registers = registers_of(decoder, value, U32)
    address = rows_of(decoder, op, target)
    count, transposed = matrix_count(op), "trans" in op.modifiers

    def step(run: Run) -> None:
        given = own_offsets(run, index, address(run.registers))
        tell_rows(run, index, "store", given, 8 * count)
        for matrix, source in enumerate(registers):
            word = source.value(run.registers)
            places = _row_places(run, given, matrix, transposed)
            if transposed:
                parts = [(word >> np.uint32(16 * i)).astype(np.uint16) for i in range(2)]
            else:
                parts = [word]
            for place, part in zip(places, parts, strict=True):
                accesses.store_window(run, index, "shared", place, [part])

    return step


# ---- wmma -----------------------------------------------------------------------------------------


def _wmma(decoder: Decoder, op: Opcode, index: int) -> Step:
    action = op.instruction.parts[1]
    shape = matrix_shape(op.instruction)
    if shape is None:
        raise decoder.unsupported(op)
    if action == "mma":
        return _wmma_multiply(decoder, op, shape)
    return _wmma_move(decoder, op, index, shape, action)


def _element_bits(type_: str) -> int:
    return ELEMENTS[type_].bits if type_ in ELEMENTS else _bytes(type_) * 8


def _wmma_move(decoder: Decoder, op: Opcode, index: int, shape: MatrixShape, action: str) -> Step:
    """``wmma.load`` and ``wmma.store``: a matrix in memory with a stride between its rows or columns."""
    role = op.instruction.parts[2]
    operands = list(op.instruction.operands)
    loading = action == "load"
    fragment, place = (operands[0], operands[1]) if loading else (operands[1], operands[0])
    bits = _element_bits(op.type)
    items = fragment.items if isinstance(fragment, Vector) else (fragment,)
    elements = len(items) * max(32, bits) // bits
    rows, columns = wmma_tables(role, *shape, elements)
    by_row = "row" in op.modifiers
    if len(operands) > 2:
        stride = decoder.source(operands[2], I32)
    else:
        height, width = {"a": (shape[0], shape[2]), "b": (shape[2], shape[1])}.get(role, shape[:2])
        stride = decoder.source(Immediate(width if by_row else height), I32)
    space = space_of(op)
    address = decoder.address(place)
    dtype = np.dtype(f"u{bits // 8}")
    aligned = op.type in ALIGNED
    word = np.dtype(f"u{max(bits, 32) // 8}")
    slots = slots_of(decoder, fragment) if loading else []
    registers = [] if loading else registers_of(decoder, fragment, word)

    def places(run: Run) -> list[Array]:
        given = address(run.registers), stride.value(run.registers)
        base, lead = (run.by_warp(x.astype(I64)) for x in given)
        if aligned:
            _check_alignment(run, index, base, lead * dtype.itemsize)
        outer, inner = (rows, columns) if by_row else (columns, rows)
        at = [base + (outer[:, i] * lead + inner[:, i]) * dtype.itemsize for i in range(elements)]
        return [np.broadcast_to(p, (p.shape[0], run.shape[1] // 32, 32)).reshape(p.shape[0], -1) for p in at]

    def load(run: Run) -> None:
        values = [accesses.load(run, index, space, p, dtype, 1)[0] for p in places(run)]
        values = [np.broadcast_to(v, (max(v.shape[0] for v in values), run.shape[1])) for v in values]
        packed = np.ascontiguousarray(np.stack(values, axis=-1)).view(word)
        hand_out(run, slots, packed.reshape(packed.shape[0], -1, 32, len(slots)))

    def store(run: Run) -> None:
        values = gather(run, registers).view(dtype)
        for i, p in enumerate(places(run)):
            part = np.ascontiguousarray(values[..., i]).reshape(values.shape[0], -1)
            accesses.store(run, index, space, p, [part])

    return load if loading else store


def _check_alignment(run: Run, index: int, start: Array, between: Array) -> None:
    """A matrix's first byte and the bytes from row to row, (b, W, 32) each, as wide loads need them."""
    for values, size, words in (
        (start, 32, "starts at address"),
        (between, 16, "has rows (or columns) that lie"),
    ):
        wide = np.broadcast_to(values, run.by_warp(run.mask()).shape).reshape(run.shape)
        bad = run.mask() & (wide % size != 0)
        if bad.any():
            value = int(wide[bad][0])
            far = f"{value:#x}" if size == 32 else f"{value} bytes apart"
            raise Misaligned(
                **run.blame(index, bad),
                what=f"named a matrix that {words} {far}, which is no multiple of {size} bytes.",
                advice="A fragment's matrix must start at a multiple of 32 bytes, its rows (or columns) a "
                "multiple of 16 bytes apart: 8 halves or 4 floats.",
            )


def _wmma_multiply(decoder: Decoder, op: Opcode, shape: MatrixShape) -> Step:
    m, n, k = shape
    types = op.types if len(op.types) == 4 else (op.types[0], "f16", "f16", op.types[-1])
    d_type, a_type, b_type, c_type = types
    if a_type not in ELEMENTS or b_type not in ELEMENTS:
        raise decoder.unsupported(op)
    element, other = ELEMENTS[a_type], ELEMENTS[b_type]
    d, *operands = op.instruction.operands
    a, b = (
        registers_of(decoder, o, register_dtype(t)) for o, t in zip(operands, (a_type, b_type), strict=False)
    )
    c = registers_of(decoder, operands[2], register_dtype(c_type))
    slots = slots_of(decoder, d)
    target, result = decoder.module.target, np.dtype({"s32": "i4"}.get(d_type, f"f{_bytes(d_type)}"))
    tables = [
        _places_of("a", shape, len(a) * max(32, element.bits) // element.bits),
        _places_of("b", shape, len(b) * max(32, other.bits) // other.bits).T,
        _places_of("c", shape, len(c) * (2 if c_type == "f16" else 1)),
    ]
    per_lane = len(slots) * (2 if d_type == "f16" else 1)
    rows, columns = wmma_tables("d", m, n, k, per_lane)
    back = rows * n + columns

    def step(run: Run) -> None:
        x, y = in_order(run, a, element, tables[0]), in_order(run, b, other, tables[1])
        z = accumulators(gather(run, c), c_type).reshape(*blocks_and_warps(run, c), -1).take(tables[2], -1)
        wide = _in_pieces(x, y, z, (element, other), result, target)
        hand_out(run, slots, contents(wide.reshape(*wide.shape[:-2], m * n).take(back, -1), d_type))

    return step


def _in_pieces(
    x: Array, y: Array, z: Array, elements: tuple[Element, Element], result: np.dtype, target: str
) -> Array:
    """A product done in steps of the tensor core's own depth: 16 halves, 8 TF32, 32 bytes, 4 doubles."""
    depth = 256 // elements[0].bits
    total = z
    for start in range(0, x.shape[-1], depth):
        part = slice(start, start + depth)
        total = matrix_product(x[..., part], y[..., part], total, elements, result, target, depth)
        total = total.astype(z.dtype)
    return total.astype(result)


def _places_of(role: str, shape: MatrixShape, elements: int) -> Array:
    """(height, width) → position among the warp's elements laid out as [lane][element]."""
    rows, columns = wmma_tables(role, *shape, elements)
    height, width = {"a": (shape[0], shape[2]), "b": (shape[2], shape[1])}.get(role, shape[:2])
    table = np.zeros((height, width), np.int64)
    table[rows, columns] = np.arange(32 * elements).reshape(32, elements)
    return table


BUILDERS = {"mma": multiply, "ldmatrix": load_matrix, "stmatrix": store_matrix, "wmma": _wmma}
