"""What each arithmetic instruction means: one row per operation, name → types and a function of arrays.

A row knows neither lanes nor registers. `operation(instruction)` looks the row up and binds it to the types
and modifiers of the opcode; the executor views the operands as `reads`, and writes the results as `writes`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from gpulab.simulator.ptx import Immediate, Instruction

from . import floats, integers
from .conversions import conversion
from .opcodes import TYPES, Function, Opcode, Operation, matrix_shape, opcode
from .packed import MIXED, mixed_operation, packed_operation
from .types import BOOL, DTYPES, I32, U32, UNSIGNED

Array = np.ndarray


def operation(instruction: Instruction) -> Operation | None:
    """The meaning of an arithmetic instruction, or None where there is no row for it."""
    op = opcode(instruction)
    build = ROWS.get(op.name)
    if build is None or not op.types:
        return None
    if op.types in MIXED and op.name in ("add", "sub", "fma"):
        return mixed_operation(op, build(replace(op, types=("f32",))))
    if any(t not in DTYPES for t in op.types):
        return packed_operation(op, ROWS)
    return build(op)


def makes_float(instruction: Instruction) -> bool:
    """Whether the result is a float made by arithmetic, and not moved, loaded or put together from bits."""
    op = opcode(instruction)
    if op.name not in ROWS or op.name in ("neg", "abs", "selp") or not op.types:
        return False
    return op.types[0 if op.name in ("cvt", "set") else -1] in ("f16", "f32", "f64")


def flops(instruction: Instruction) -> float:
    """Floating-point operations of one lane's execution; of a matrix operation, its share of them.

    Products with elements that a sparse matrix does not store are none.
    """
    if instruction.opcode.startswith(("mma.", "wmma.mma.", "wgmma.mma_async.")):
        shape, parts = matrix_shape(instruction), set(instruction.parts)
        integer = bool({"s8", "u8", "s4", "u4", "b1"} & parts)
        lanes = 128 if "mma_async" in parts else 32
        kept = 2 if {"sp", "sp::ordered_metadata"} & parts else 1
        return 0 if shape is None or integer else 2 * shape.m * shape.n * shape.k / lanes / kept
    if instruction.parts[0] in ("atom", "red"):
        return _atomic_flops(instruction)
    meaning = operation(instruction)
    return meaning.flops if meaning is not None else 0


def _atomic_flops(instruction: Instruction) -> int:
    """Additions of an atomic on floats, each as one by `add`."""
    parts = instruction.parts
    if "add" not in parts or not parts[-1].startswith(("f", "bf")):
        return 0
    return (2 if parts[-1].endswith("x2") else 1) * next((n for n in (2, 4, 8) if f"v{n}" in parts), 1)


# ---- builders: how a family of opcodes becomes an operation --------------------------------------


def _same(op: Opcode, run: Function, sources: int, flops: int = 0) -> Operation:
    """All operands and the result have the opcode's type."""
    if op.is_float:
        run = floats.modified(run, op.modifiers)
    return Operation(run, (op.dtype,) * sources, (op.dtype,), flops if op.is_float else 0)


def _plain(run: Function, sources: int) -> Callable[[Opcode], Operation | None]:
    return lambda op: _same(op, run, sources)


def _add(op: Opcode) -> Operation | None:
    return _sum(op, np.add, integers.add_carry, integers.add_saturated, floats.add_error, lambda a, b: (a, b))


def _subtract(op: Opcode) -> Operation | None:
    return _sum(
        op,
        np.subtract,
        integers.subtract_borrow,
        integers.subtract_saturated,
        lambda a, b, r: floats.add_error(a, -b, r),
        lambda a, b: (a, -b),
    )


def _sum(
    op: Opcode, run: Function, chained: Function, saturated: Function, error: Function, terms: Function
) -> Operation | None:
    carries = op.name.endswith("c")
    if carries or "cc" in op.modifiers:
        if op.is_float:
            return None
        kinds = (op.dtype, op.dtype)
        step = chained if carries else partial(_without_carry, chained)
        if "cc" not in op.modifiers:
            return Operation(partial(_drop_carry, step), kinds, (op.dtype,), carry_in=carries)
        return Operation(step, kinds, (op.dtype,), carry_in=carries, carry_out=True)
    if op.is_float:
        mode = _directed(op)
        run = floats.rounded_sum(run, error, terms, mode) if mode else run
    elif "sat" in op.modifiers:
        run = saturated
    return _same(op, run, 2, flops=1)


_NO_CARRY = np.zeros((1, 1), bool)


def _without_carry(chained: Function, *operands: Array) -> tuple[Array, ...]:
    return chained(*operands, _NO_CARRY)


def _drop_carry(step: Function, *operands: Array) -> Array:
    return step(*operands)[0]


def _directed(op: Opcode) -> str | None:
    """The rounding mode where it is not to nearest."""
    return next(iter(op.modifiers & {"rz", "rm", "rp"}), None)


def _with_rounding(run: Function, error: Function, op: Opcode) -> Function:
    mode = _directed(op)
    return floats.rounded(run, error, mode) if mode else run


def _multiply(op: Opcode) -> Operation | None:
    if op.is_float:
        run = _with_rounding(np.multiply, lambda a, b, r: floats.fma_error(a, b, np.zeros_like(a), r), op)
        return _same(op, run, 2, flops=1)
    if "wide" in op.modifiers:
        return Operation(integers.multiply_wide, (op.dtype, op.dtype), (_twice(op.dtype),))
    if "hi" in op.modifiers:
        return _same(op, integers.multiply_high, 2)
    return _same(op, np.multiply, 2)


def _twice(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"{dtype.kind}{dtype.itemsize * 2}")


def _multiply_add(op: Opcode) -> Operation | None:
    if op.is_float:
        return _fused(op)
    if "wide" in op.modifiers:
        wide = _twice(op.dtype)
        return Operation(
            lambda a, b, c: integers.multiply_wide(a, b) + c, (op.dtype, op.dtype, wide), (wide,)
        )
    product = integers.multiply_high if "hi" in op.modifiers else np.multiply
    carries = op.name == "madc"
    if carries or "cc" in op.modifiers:

        def chain(a: Array, b: Array, c: Array, carry: Array = _NO_CARRY) -> tuple[Array, Array]:
            return integers.add_carry(product(a, b), c, carry)

        kinds = (op.dtype,) * 3
        if "cc" in op.modifiers:
            return Operation(chain, kinds, (op.dtype,), carry_in=carries, carry_out=True)
        return Operation(partial(_drop_carry, chain), kinds, (op.dtype,), carry_in=carries)
    return _same(op, lambda a, b, c: product(a, b) + c, 3)


def _fused(op: Opcode) -> Operation | None:
    if not op.is_float:
        return None
    mode = _directed(op)
    run: Function = floats.fused
    if mode:
        run = floats.rounded_sum(floats.fused, floats.fma_error, lambda a, b, c: (a * b, c), mode)
    if "relu" in op.modifiers:
        inner = run
        run = lambda a, b, c: np.maximum(inner(a, b, c), a.dtype.type(0))  # noqa: E731
    return _same(op, run, 3, flops=2)


def _divide(op: Opcode) -> Operation | None:
    if not op.is_float:
        return _same(op, integers.divide, 2)
    mode = _directed(op)
    run: Function = np.divide
    if mode:
        # The remainder a − q·b has the sign of the error, seen from b's side.
        run = floats.rounded(np.divide, lambda a, b, q: np.sign(floats.fused(-q, b, a)) * np.sign(b), mode)
    return _same(op, run, 2, flops=1)


def _root(op: Opcode) -> Operation | None:
    mode = _directed(op)
    run: Function = np.sqrt
    if "approx" in op.modifiers and op.dtype.itemsize == 4:
        run = floats.APPROXIMATE["sqrt"]
    elif mode:
        run = floats.rounded(np.sqrt, lambda x, r: floats.fused(-r, r, x), mode)
    return _same(op, run, 1, flops=1)


def _reciprocal(op: Opcode) -> Operation | None:
    mode = _directed(op)
    run: Function = np.reciprocal
    if "approx" in op.modifiers and op.dtype.itemsize == 8:
        run = _coarse_reciprocal
    elif mode:
        run = floats.rounded(
            np.reciprocal, lambda x, r: np.sign(floats.fused(-r, x, np.ones_like(x))) * np.sign(x), mode
        )
    return _same(op, run, 1, flops=1)


def _coarse_reciprocal(x: Array) -> Array:
    """``rcp.approx.ftz.f64``: the upper 32 bits only, as the manual defines it."""
    y = np.reciprocal(floats.flush(x))
    return (y.view(np.int64) & np.int64(-(2**32))).view(np.float64)


def _coarse_root(x: Array) -> Array:
    y = 1.0 / np.sqrt(floats.flush(x))
    return (y.view(np.int64) & np.int64(-(2**32))).view(np.float64)


def _special_function(op: Opcode) -> Operation | None:
    if not op.is_float:
        return None
    run = floats.APPROXIMATE[op.name]
    if op.name == "rsqrt" and op.dtype.itemsize == 8:
        run = _coarse_root if "ftz" in op.modifiers else floats.reciprocal_root
    return _same(op, run, 1, flops=1)


def _negate(op: Opcode) -> Operation | None:
    return _same(op, np.negative, 1)


def _absolute(op: Opcode) -> Operation | None:
    return _same(op, np.abs, 1)


def _extreme(op: Opcode) -> Operation | None:
    lower = op.name == "min"
    if not op.is_float:
        return _same(op, np.minimum if lower else np.maximum, 2)
    if "NaN" in op.modifiers:
        run: Function = floats.minimum_nan if lower else floats.maximum_nan
    else:
        run = floats.minimum if lower else floats.maximum
    sources = sum(1 for _ in op.instruction.operands) - 1
    if sources == 3:
        two = run
        run = lambda a, b, c: two(two(a, b), c)  # noqa: E731
    return _same(op, run, sources, flops=sources - 1)


def _shift(op: Opcode) -> Operation | None:
    run = integers.shift_left if op.name == "shl" else integers.shift_right
    # Without a sign in its type a shift to the right brings in zeros.
    dtype = UNSIGNED[op.dtype.itemsize] if op.type.startswith("b") else op.dtype
    return Operation(run, (dtype, U32), (dtype,))


def _funnel(op: Opcode) -> Operation | None:
    run = integers.funnel_left if "l" in op.modifiers else integers.funnel_right

    def step(a: Array, b: Array, n: Array) -> Array:
        return run(a, b, n & np.uint32(31) if "wrap" in op.modifiers else np.minimum(n, np.uint32(32)))

    return Operation(step, (U32, U32, U32), (U32,))


def _logic(run: Function, sources: int) -> Callable[[Opcode], Operation | None]:
    return lambda op: Operation(run, (op.dtype,) * sources, (op.dtype,))


def _invert(op: Opcode) -> Operation | None:
    return Operation(np.logical_not if op.type == "pred" else np.invert, (op.dtype,), (op.dtype,))


def _clear_logical(op: Opcode) -> Operation | None:
    return Operation(lambda a: (a == 0).astype(a.dtype), (op.dtype,), (op.dtype,))


def _logic3(op: Opcode) -> Operation | None:
    table = op.instruction.operands[-1]
    if not isinstance(table, Immediate) or "BoolOp" in op.modifiers:
        return None
    truth = int(table.value)
    return Operation(
        lambda a, b, c, _: integers.logic3(a, b, c, truth), (op.dtype,) * 3 + (I32,), (op.dtype,)
    )


def _count_bits(run: Function) -> Callable[[Opcode], Operation | None]:
    return lambda op: Operation(run, (op.dtype,), (I32,))


def _highest_bit(op: Opcode) -> Operation | None:
    if "shiftamt" in op.modifiers:
        width = np.int32(op.dtype.itemsize * 8 - 1)

        def run(x: Array) -> Array:
            position = integers.highest_bit(x)
            return np.where(position < 0, position, width - position)

        return Operation(run, (op.dtype,), (I32,))
    return Operation(integers.highest_bit, (op.dtype,), (I32,))


def _extract(op: Opcode) -> Operation | None:
    return Operation(integers.extract_field, (op.dtype, I32, I32), (op.dtype,))


def _insert(op: Opcode) -> Operation | None:
    return Operation(integers.insert_field, (op.dtype, op.dtype, I32, I32), (op.dtype,))


def _permute(op: Opcode) -> Operation | None:
    if op.modifiers:
        return None
    return Operation(integers.permute_bytes, (U32, U32, U32), (U32,))


def _bit_mask(op: Opcode) -> Operation | None:
    return Operation(partial(integers.bit_mask, clamp="clamp" in op.modifiers), (U32, U32), (U32,))


def _dot(op: Opcode) -> Operation | None:
    a, b = (t == "s32" for t in op.types)
    if op.name == "dp4a":
        run: Function = partial(integers.dot4, a_signed=a, b_signed=b)
    else:
        run = partial(integers.dot2, a_signed=a, b_signed=b, high="hi" in op.modifiers)
    return Operation(run, (I32, I32, I32), (I32,))


def _sad(op: Opcode) -> Operation | None:
    return _same(op, integers.absolute_sum, 3)


def _multiply24(op: Opcode) -> Operation | None:
    def narrow(x: Array) -> Array:
        wide = x.astype(np.int64) & 0xFF_FFFF
        return np.where(wide >= 0x80_0000, wide - 0x100_0000, wide) if op.type == "s32" else wide

    shift = 16 if "hi" in op.modifiers else 0
    if op.name == "mul24":
        return _same(op, lambda a, b: ((narrow(a) * narrow(b)) >> shift).astype(op.dtype), 2)
    return _same(op, lambda a, b, c: ((narrow(a) * narrow(b)) >> shift).astype(op.dtype) + c, 3)


def _convert(op: Opcode) -> Operation | None:
    if "pack" in op.modifiers or len(op.types) != 2:
        return None
    target, source = op.types
    return Operation(conversion(target, source, op.modifiers), (DTYPES[source],), (DTYPES[target],))


def _select(op: Opcode) -> Operation | None:
    return Operation(lambda a, b, p: np.where(p, a, b), (op.dtype, op.dtype, BOOL), (op.dtype,))


def _select_by_sign(op: Opcode) -> Operation | None:
    value, sign = DTYPES[op.types[0]], DTYPES[op.types[1]]
    return Operation(lambda a, b, c: np.where(c >= 0, a, b), (value, value, sign), (value,))


# ---- comparisons ---------------------------------------------------------------------------------

ORDERED: dict[str, Function] = {
    "eq": np.equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}


def _not_equal(a: Array, b: Array) -> Array:
    """``ne`` on floats is ordered: false where one is a NaN."""
    return (a < b) | (a > b)


def _unordered(test: Function) -> Function:
    return lambda a, b: test(a, b) | np.isnan(a) | np.isnan(b)


def comparison(name: str, is_float: bool) -> Function | None:
    """The test that a comparison's name stands for."""
    if name == "ne":
        return _not_equal if is_float else np.not_equal
    if name in ORDERED:
        return ORDERED[name]
    if name == "num":
        return lambda a, b: ~(np.isnan(a) | np.isnan(b))
    if name == "nan":
        return lambda a, b: np.isnan(a) | np.isnan(b)
    if name == "neu":
        return np.not_equal
    if name.endswith("u") and name[:-1] in ORDERED:
        return _unordered(ORDERED[name[:-1]])
    return None


COMBINE: dict[str, Function] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def _compare(op: Opcode) -> Operation | None:
    """``setp`` and ``set``: a comparison, perhaps combined with a third predicate."""
    parts = [p for p in op.instruction.parts[1:] if p not in TYPES and p != "ftz"]
    test = comparison(parts[0], op.is_float) if parts else None
    if test is None:
        return None
    if "ftz" in op.modifiers:
        unflushed = test
        test = lambda a, b: unflushed(floats.flush(a), floats.flush(b))  # noqa: E731
    combine = next((COMBINE[p] for p in parts[1:] if p in COMBINE), None)
    reads: tuple[np.dtype, ...] = (op.dtype, op.dtype)
    if combine is not None:
        reads += (BOOL,)

        def first(a: Array, b: Array, c: Array) -> Array:
            return combine(test(a, b), c)

        def both(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
            hit = test(a, b)
            return combine(hit, c), combine(~hit, c)
    else:

        def first(a: Array, b: Array) -> Array:  # type: ignore[misc]
            return test(a, b)

        def both(a: Array, b: Array) -> tuple[Array, Array]:  # type: ignore[misc]
            hit = test(a, b)
            return hit, ~hit

    if op.name == "setp":
        two = type(op.instruction.operands[0]).__name__ == "Pair"
        return Operation(both if two else first, reads, (BOOL, BOOL) if two else (BOOL,))
    to = DTYPES[op.types[0]]
    truth = to.type(1.0) if to.kind == "f" else to.type(-1 if to.kind == "i" else np.iinfo(to).max)
    return Operation(lambda *x: np.where(first(*x), truth, to.type(0)), reads, (to,))


def _test_property(op: Opcode) -> Operation | None:
    tests: dict[str, Function] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda x: ~np.isnan(x),
        "notanumber": np.isnan,
        "normal": lambda x: np.isfinite(x) & (np.abs(x) >= np.finfo(x.dtype).tiny),
        "subnormal": lambda x: (x != 0) & (np.abs(x) < np.finfo(x.dtype).tiny),
    }
    test = next((tests[m] for m in op.modifiers if m in tests), None)
    return None if test is None else Operation(test, (op.dtype,), (BOOL,))


def _copy_sign(op: Opcode) -> Operation | None:
    return _same(op, lambda a, b: np.copysign(b, a), 2)


# ---- the table -----------------------------------------------------------------------------------

ROWS: dict[str, Callable[[Opcode], Operation | None]] = {
    "add": _add,
    "addc": _add,
    "sub": _subtract,
    "subc": _subtract,
    "mul": _multiply,
    "mad": _multiply_add,
    "madc": _multiply_add,
    "mul24": _multiply24,
    "mad24": _multiply24,
    "fma": _fused,
    "div": _divide,
    "rem": _plain(integers.remainder, 2),
    "neg": _negate,
    "abs": _absolute,
    "min": _extreme,
    "max": _extreme,
    "sad": _sad,
    "rcp": _reciprocal,
    "sqrt": _root,
    "rsqrt": _special_function,
    "sin": _special_function,
    "cos": _special_function,
    "lg2": _special_function,
    "ex2": _special_function,
    "tanh": _special_function,
    "and": _logic(np.bitwise_and, 2),
    "or": _logic(np.bitwise_or, 2),
    "xor": _logic(np.bitwise_xor, 2),
    "not": _invert,
    "cnot": _clear_logical,
    "lop3": _logic3,
    "shl": _shift,
    "shr": _shift,
    "shf": _funnel,
    "popc": _count_bits(integers.population),
    "clz": _count_bits(integers.leading_zeros),
    "brev": _logic(integers.reverse_bits, 1),
    "bfind": _highest_bit,
    "bfe": _extract,
    "bfi": _insert,
    "bmsk": _bit_mask,
    "prmt": _permute,
    "dp4a": _dot,
    "dp2a": _dot,
    "cvt": _convert,
    "selp": _select,
    "slct": _select_by_sign,
    "setp": _compare,
    "set": _compare,
    "testp": _test_property,
    "copysign": _copy_sign,
}
