"""bfloat16, TF32, and pairs of floats packed into one register; `small_floats` has those of 8 bits and less.

A packed operation is the scalar one done on both halves: registers are seen as arrays with one more axis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from . import small_floats, stochastic
from .conversions import conversion
from .floats import canonical, maximum, minimum, round_to_odd, round_toward, two_sum
from .opcodes import Function, Opcode, Operation
from .small_floats import FORMS
from .types import DTYPES, I32, I64

Array = np.ndarray

HALF_BITS = np.dtype("i2")
BF16_NAN = 0x7FFF


# ---- bfloat16 -------------------------------------------------------------------------------------


def from_bf16(bits: Array) -> Array:
    """int16 bit patterns → float32, exactly."""
    return (bits.astype(np.int32) << np.int32(16)).view(np.float32)


def to_bf16(x: Array, mode: str = "rn") -> Array:
    """float32 or float64 → int16 bit patterns, rounded once (``rn`` to even, ``rz``, ``rp``, ``rm``)."""
    single = _to_odd_float32(x) if x.dtype == np.float64 else x
    bits = single.view(np.uint32)
    if mode == "rn":
        upper = (
            bits.astype(np.uint64) + np.uint64(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
        ) >> np.uint64(16)
    else:
        upper = (bits >> np.uint32(16)).astype(np.uint64)
        if mode in ("rp", "rm"):  # one step away from zero on the side that the rounding goes to
            away = (single > 0) if mode == "rp" else (single < 0)
            upper = upper + (away & ((bits & np.uint32(0xFFFF)) != 0))
    return np.where(np.isnan(single), np.uint16(BF16_NAN), upper.astype(np.uint16)).view(HALF_BITS)


def _to_odd_float32(x: Array) -> Array:
    """float64 → float32, an inexact result made odd, so that the next rounding is the only one that
    counts."""
    nearest = x.astype(np.float32)
    back = nearest.astype(np.float64)
    bits = nearest.view(np.int32)
    inexact = (back != x) & np.isfinite(back) & ~np.isnan(x)
    truncated = bits - (inexact & (np.abs(back) > np.abs(x)))
    return np.where(inexact, truncated | 1, bits).astype(np.int32).view(np.float32)


# ---- TF32: float32 with 10 bits of mantissa ------------------------------------------------------------


def to_tf32(x: Array, mode: str) -> Array:
    """float32 rounded to 10 bits of mantissa: ``rna`` to nearest, ties away; ``rn`` to even; ``rz`` toward
    zero."""
    bits = x.view(np.uint32).astype(np.uint64)
    if mode == "rna":
        bits = bits + np.uint64(0x1000)
    elif mode == "rn":
        bits = bits + np.uint64(0xFFF) + ((bits >> np.uint64(13)) & np.uint64(1))
    cut = (bits & np.uint64(0xFFFFE000)).astype(np.uint32).view(np.float32)
    return np.where(np.isfinite(x), cut, canonical(x))


# ---- pairs ------------------------------------------------------------------------------------------------


def halves(x: Array) -> Array:
    """int32 registers → int16 (…, 2), the lower half first."""
    return np.ascontiguousarray(x).view(HALF_BITS).reshape(*x.shape, 2)


def join(pair: Array) -> Array:
    """int16 (…, 2) → int32 registers."""
    return np.ascontiguousarray(pair).view(I32)[..., 0]


def _exact(name: str, *operands: Array) -> Array:
    """A bf16 operation on float32 operands, as float64 that still knows on which side of a tie it is."""
    wide = [x.astype(np.float64) for x in operands]
    if name == "fma":
        return round_to_odd(*two_sum(wide[0] * wide[1], wide[2]))
    if name == "mul":
        return wide[0] * wide[1]
    return round_to_odd(*two_sum(wide[0], -wide[1] if name == "sub" else wide[1]))


def _bf16(op: Opcode, scalar: Function) -> Function:
    """An operation on int16 arrays of bfloat16. Sums and products are rounded once, all others via
    float32."""

    def run(*bits: Array) -> Array:
        values = [from_bf16(b) for b in bits]
        if op.name in ("fma", "mul", "add", "sub"):
            result = _exact(op.name, *values)
            if "relu" in op.modifiers:
                result = np.maximum(result, 0.0)
            return to_bf16(result)
        return to_bf16(scalar(*values))

    return run


def _f16(scalar: Function) -> Function:
    def run(*bits: Array) -> Array:
        return canonical(scalar(*(b.view(np.float16) for b in bits))).view(HALF_BITS)

    return run


def atomic(name: str, type_: str) -> Callable[[Array, Array], Array] | None:
    """What the atomic `name` makes of the old bits and an operand's, for bf16, f16x2 and bf16x2."""
    if name not in ("add", "min", "max") or type_ not in ATOMIC:
        return None
    scalar = {"min": minimum, "max": maximum}.get(name, np.add)

    def one(old: Array, value: Array) -> Array:
        if type_ == "f16x2":
            return canonical(scalar(old.view(np.float16), value.view(np.float16))).view(HALF_BITS)
        first, second = from_bf16(old), from_bf16(value)
        return to_bf16(_exact("add", first, second) if name == "add" else scalar(first, second))

    if type_ == "bf16":
        return one
    return lambda old, value: join(one(halves(old), halves(value)))


ATOMIC = {"bf16": HALF_BITS, "f16x2": I32, "bf16x2": I32}  # types of atomics that NumPy does not have

# Types of ``add``, ``sub`` and ``fma`` in float32 whose factors, or first summand, are narrower.
MIXED = (("f32", "f16"), ("f32", "bf16"))


def mixed_operation(op: Opcode, scalar: Operation | None) -> Operation | None:
    """``fma.f32.bf16`` and its like, where `scalar` is the same on float32.

    All operands but the last are widened first, which is exact.
    """
    if scalar is None:
        return None
    narrow, single = op.types[1], scalar.run

    def widened(bits: Array) -> Array:
        return from_bf16(bits) if narrow == "bf16" else bits.view(np.float16).astype(np.float32)

    def run(*operands: Array) -> Array:
        return canonical(single(*map(widened, operands[:-1]), operands[-1]))

    f4 = np.dtype("f4")
    return Operation(run, (HALF_BITS,) * (len(scalar.reads) - 1) + (f4,), (f4,), scalar.flops)


def _f32x2(op: Opcode, rows: dict[str, Function]) -> Operation | None:
    """Two operations on float32, whose operands are the halves of 64-bit registers."""
    scalar = rows[op.name](_retyped(op, "f32")) if op.name in ("add", "sub", "mul", "fma") else None
    if scalar is None:
        return None
    single = scalar.run

    def run(*registers: Array) -> Array:
        pairs = (
            np.ascontiguousarray(x).view(np.float32).reshape(*x.shape, 2)
            for x in np.broadcast_arrays(*registers)
        )
        return np.ascontiguousarray(canonical(single(*pairs))).view(I64)[..., 0]

    return Operation(run, (I64,) * len(scalar.reads), (I64,), 2 * scalar.flops)


def packed_operation(op: Opcode, rows: dict[str, Function]) -> Operation | None:
    """Operations of type bf16, f16x2, bf16x2 and f32x2, and conversions to and from all small formats."""
    if op.name == "cvt":
        return _conversion(op)
    if op.types == ("f32x2",):
        return _f32x2(op, rows)
    if op.name not in rows or len(op.types) != 1:
        return None
    element = op.type.removesuffix("x2")
    scalar = rows[op.name](_retyped(op, "f16" if element == "f16" else "f32"))
    if scalar is None or len(scalar.writes) != 1 or scalar.writes[0].kind != "f":
        return _packed_comparison(op, rows, element)
    run = _f16(scalar.run) if element == "f16" else _bf16(op, scalar.run)
    sources = len(scalar.reads)
    if not op.type.endswith("x2"):
        return Operation(run, (HALF_BITS,) * sources, (HALF_BITS,), scalar.flops)
    return Operation(lambda *x: join(run(*map(halves, x))), (I32,) * sources, (I32,), 2 * scalar.flops)


def _packed_comparison(op: Opcode, rows: dict[str, Function], element: str) -> Operation | None:
    """``setp.f16x2``: two predicates from two halves."""
    scalar = rows[op.name](_retyped(op, "f16" if element == "f16" else "f32"))
    if op.name != "setp" or scalar is None:
        return None

    def seen(bits: Array) -> Array:
        return bits.view(np.float16) if element == "f16" else from_bf16(bits)

    bool_ = DTYPES["pred"]
    if not op.type.endswith("x2"):
        return Operation(lambda a, b: scalar.run(seen(a), seen(b)), (HALF_BITS, HALF_BITS), (bool_,))

    def both(a: Array, b: Array) -> tuple[Array, Array]:
        hit = np.asarray(rows["setp"](_single(op, element)).run(seen(halves(a)), seen(halves(b))))
        return hit[..., 0], hit[..., 1]

    return Operation(both, (I32, I32), (bool_, bool_))


def _single(op: Opcode, element: str) -> Opcode:
    """The same comparison with one predicate as its result."""
    instruction = op.instruction
    first = instruction.operands[0]
    single = replace(instruction, operands=(getattr(first, "first", first), *instruction.operands[1:]))
    return replace(_retyped(op, "f16" if element == "f16" else "f32"), instruction=single)


def _retyped(op: Opcode, type_: str) -> Opcode:
    return replace(op, types=(type_,))


# ---- conversions ----------------------------------------------------------------------------------


def _clipper(op: Opcode) -> Callable[[Array], Array]:
    """What ``relu`` does: negative numbers and NaN become 0."""
    if "relu" not in op.modifiers:
        return lambda x: x
    return lambda x: np.where(x > 0, x, x.dtype.type(0))


def _conversion(op: Opcode) -> Operation | None:
    target, source = op.types
    f4, f2 = np.dtype("f4"), np.dtype("f2")
    mode = next((m for m in ("rz", "rna", "rn", "rp", "rm") if m in op.modifiers), "rn")
    clip = _clipper(op)

    if "rs" in op.modifiers:
        return stochastic.conversion(target, "satfinite" in op.modifiers, clip) if source == "f32" else None
    if target == "bf16" and source == "f32":
        return Operation(lambda x: to_bf16(clip(x), mode), (f4,), (HALF_BITS,))
    if target == source == "bf16":  # to a whole number, which bfloat16 holds exactly
        whole = conversion("f32", "f32", op.modifiers)
        return Operation(lambda x: to_bf16(whole(from_bf16(x))), (HALF_BITS,), (HALF_BITS,))
    if target == "bf16" and source in DTYPES:
        return Operation(lambda x: to_bf16(x.astype(np.float64), mode), (DTYPES[source],), (HALF_BITS,))
    if source == "bf16" and target in ("f32", "f64"):
        return Operation(lambda x: from_bf16(x).astype(DTYPES[target]), (HALF_BITS,), (DTYPES[target],))
    if source == "bf16" and target in DTYPES:
        inner = conversion(target, "f32", op.modifiers)
        return Operation(lambda x: inner(from_bf16(x)), (HALF_BITS,), (DTYPES[target],))
    if target == "tf32":
        return Operation(lambda x: to_tf32(clip(x), mode).view(I32), (f4,), (I32,))
    if target in ("f16x2", "bf16x2") and source == "f32":  # the first source goes into the upper half

        def narrow(x: Array) -> Array:
            if target == "bf16x2":
                return to_bf16(clip(x), mode)
            if mode == "rz":
                y = x.astype(f2)
                return canonical(round_toward(y, x.astype("f8") - y.astype("f8"), "rz")).view(HALF_BITS)
            return canonical(clip(x).astype(f2)).view(HALF_BITS)

        def pair(upper: Array, lower: Array) -> Array:
            shape = np.broadcast_shapes(upper.shape, lower.shape)
            return join(np.stack([np.broadcast_to(narrow(x), shape) for x in (lower, upper)], axis=-1))

        return Operation(pair, (f4, f4), (I32,))
    return _small_conversion(op)


def _packed(form: str, codes: Array) -> Array:
    """Codes (…, 2), the lower first → a register: two bytes, or one byte of two 4-bit numbers."""
    if form == "e2m1":
        return (codes[..., 0] | codes[..., 1] << np.uint8(4)).astype(np.uint8)
    return np.ascontiguousarray(codes).view(HALF_BITS)[..., 0]


def _unpacked(form: str, x: Array) -> Array:
    if form == "e2m1":
        return np.stack([x & np.uint8(15), x >> np.uint8(4)], axis=-1)
    codes = np.ascontiguousarray(x).view(np.uint8).reshape(*x.shape, 2)
    return codes & np.uint8(2 * FORMS[form].sign - 1) if form in FORMS else codes


def _small_conversion(op: Opcode) -> Operation | None:
    """``cvt`` between pairs of small floats or scales and float32, f16x2, bf16x2; None for another."""
    target, source = op.types
    clip = _clipper(op)
    mode = next((m for m in ("rz", "rp") if m in op.modifiers), "rn")
    form = target.removesuffix("x2")
    if form in FORMS or form == "ue8m0":
        register = np.dtype("u1") if form == "e2m1" else HALF_BITS

        def narrow(x: Array) -> Array:
            if form == "ue8m0":
                return small_floats.scales(x.astype(np.float32), mode, "satfinite" in op.modifiers)
            return small_floats.encode(clip(x), form, mode)

        if source == "f32":  # the first source becomes the upper half

            def two(upper: Array, lower: Array) -> Array:
                codes = np.broadcast_arrays(narrow(lower), narrow(upper))
                return _packed(form, np.stack(codes, axis=-1))

            return Operation(two, (np.dtype("f4"),) * 2, (register,))
        if source in ("f16x2", "bf16x2"):
            read = from_bf16 if source == "bf16x2" else lambda bits: bits.view(np.float16)
            return Operation(lambda x: _packed(form, narrow(read(halves(x)))), (I32,), (register,))
        return None
    form = source.removesuffix("x2")
    register = np.dtype("u1") if form == "e2m1" else HALF_BITS
    if form == "ue8m0" and target == "bf16x2":
        return Operation(lambda x: join(small_floats.of_scales(_unpacked(form, x))), (register,), (I32,))
    if form in FORMS and target in ("f16x2", "bf16x2"):

        def wide(x: Array) -> Array:
            found = clip(small_floats.values(form)[_unpacked(form, x)])
            if target == "bf16x2":
                return join(to_bf16(found))
            return join(canonical(found.astype(np.float16)).view(HALF_BITS))

        return Operation(wide, (register,), (I32,))
    return None
