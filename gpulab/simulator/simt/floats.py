"""Floating-point arithmetic as PTX asks for it: fused, in four rounding modes, flushed, saturated,
approximate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .compiled import fma, is_worth_compiling
from .types import SIGNED

Array = np.ndarray
Function = Callable[..., Array]
Terms = Callable[..., tuple[Array, Array]]  # the two terms whose sum an operation rounds

CANONICAL_NAN = {2: 0x7FFF, 4: 0x7FFF_FFFF, 8: 0x7FF8_0000_0000_0000}

# ---- rounding ------------------------------------------------------------------------------------


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """s + e = a + b exactly, s being a + b rounded to nearest (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def round_toward(nearest: Array, error: Array, mode: str) -> Array:
    """Turn a result rounded to nearest into one rounded by `mode`, given the sign of exact − nearest."""
    if mode == "rm":
        return np.where(error < 0, np.nextafter(nearest, nearest.dtype.type(-np.inf)), nearest)
    if mode == "rp":
        return np.where(error > 0, np.nextafter(nearest, nearest.dtype.type(np.inf)), nearest)
    too_large = ((error < 0) & (nearest > 0)) | ((error > 0) & (nearest < 0))
    return (nearest.view(SIGNED[nearest.dtype.itemsize]) - too_large).view(nearest.dtype)  # one step to zero


def _finite_error(error: Array, nearest: Array) -> Array:
    """No correction where the nearest result is a NaN or where the exact one is infinite too."""
    return np.where(np.isnan(error), 0.0, error)


def add_error(a: Array, b: Array, nearest: Array) -> Array:
    """Sign of (a + b) − nearest."""
    if nearest.dtype.itemsize < 8:
        s, e = two_sum(a.astype(np.float64), b.astype(np.float64))
        rest = s - nearest.astype(np.float64)
        return _finite_error(np.where(rest == 0, e, rest), nearest)
    _, e = two_sum(a, b)
    return _finite_error(e, nearest)


def fma_error(a: Array, b: Array, c: Array, nearest: Array) -> Array:
    """Sign of (a·b + c) − nearest."""
    if nearest.dtype.itemsize < 8:
        product = a.astype(np.float64) * b.astype(np.float64)
        s, e = two_sum(product, c.astype(np.float64))
        rest = s - nearest.astype(np.float64)
        return _finite_error(np.where(rest == 0, e, rest), nearest)
    return np.where(
        np.isinf(nearest) & np.isfinite(a * 0 + b * 0 + c), -nearest, _scaled_error(a, b, c, nearest)
    )


def _scaled_error(a: Array, b: Array, c: Array, nearest: Array) -> Array:
    """Sign of (a·b + c) − nearest in float64, whatever the exponents: the largest term is brought near 1
    first."""
    (ma, ea), (mb, eb) = np.frexp(a), np.frexp(b)
    product = ma * mb
    low = fma()(ma, mb, -product)
    lowest = np.int32(-(2**20))
    exponents = [
        np.where(product != 0, ea + eb, lowest),
        *(np.where(x != 0, np.frexp(x)[1], lowest) for x in (c, nearest)),
    ]
    top = np.maximum(np.maximum(exponents[0], exponents[1]), exponents[2])
    shift = ea + eb - top
    s, t = two_sum(np.ldexp(product, shift), np.ldexp(c, -top))
    error = (s - np.ldexp(nearest, -top)) + (t + np.ldexp(low, shift))
    lost = np.where(shift < -900, product, np.where(exponents[1] - top < -900, c, 0.0))  # too small to show
    return _finite_error(np.where(error == 0, lost, error), nearest)


def fused(a: Array, b: Array, c: Array) -> Array:
    """a·b + c rounded once to the operands' type."""
    if a.dtype.itemsize == 8 or (a.dtype.itemsize == 4 and is_worth_compiling(max(a.size, b.size, c.size))):
        return fma()(a, b, c)
    s, e = two_sum(a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64))
    return round_to_odd(s, e).astype(a.dtype)


def round_to_odd(nearest: Array, error: Array) -> Array:
    """float64 sums rounded to odd, so that a second rounding to a narrower type is the only one that
    counts."""
    bits = np.broadcast_to(nearest, np.broadcast_shapes(nearest.shape, error.shape)).copy().view(np.int64)
    inexact = (error != 0) & np.isfinite(nearest)
    away = inexact & ((error > 0) != (nearest > 0)) & (nearest != 0)
    bits -= away
    bits |= inexact
    return bits.view(np.float64)


def rounded(function: Function, error: Function, mode: str) -> Function:
    """`function` in another rounding mode than to nearest."""

    def run(*operands: Array) -> Array:
        nearest = function(*operands)
        return round_toward(nearest, error(*operands, nearest), mode)

    return run


def rounded_sum(function: Function, error: Function, terms: Terms, mode: str) -> Function:
    """As `rounded`, for sums: toward minus infinity terms that cancel give −0. `terms(*operands)` are the
    two."""
    inner = rounded(function, error, mode)
    if mode != "rm":
        return inner

    def run(*operands: Array) -> Array:
        result = inner(*operands)
        a, b = terms(*operands)
        cancelled = (result == 0) & (np.signbit(a) | np.signbit(b))
        return np.where(cancelled & (error(*operands, np.abs(result)) == 0), -np.abs(result), result)

    return run


# ---- modifiers -----------------------------------------------------------------------------------


def flush(x: Array) -> Array:
    """Denormals become zeros of the same sign (``.ftz``)."""
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(x.dtype.type(0), x), x)


def saturate(x: Array) -> Array:
    """Into 0 … 1, NaN to 0 (``.sat``)."""
    one, zero = x.dtype.type(1), x.dtype.type(0)
    return np.where(x > zero, np.minimum(x, one), zero)


def modified(function: Function, modifiers: frozenset[str]) -> Function:
    """`function` with ``.ftz`` and ``.sat`` around it."""
    run = function
    if "ftz" in modifiers:
        inner = run

        def run(*operands: Array) -> Array:
            return flush(inner(*(flush(x) if x.dtype.kind == "f" else x for x in operands)))

    if "sat" in modifiers:
        unsaturated = run

        def run(*operands: Array) -> Array:
            return saturate(unsaturated(*operands))

    return run


def canonical(x: Array) -> Array:
    """Every NaN as PTX's own: 0x7fffffff for f32, 0x7fff for f16."""
    nans = np.isnan(x)
    if not nans.any():
        return x
    bits = x.view(SIGNED[x.dtype.itemsize])
    return np.where(nans, bits.dtype.type(CANONICAL_NAN[x.dtype.itemsize]), bits).view(x.dtype)


# ---- comparisons that know about NaN and signed zero ---------------------------------------------


def minimum(a: Array, b: Array) -> Array:
    """The smaller; −0 is below +0; a NaN loses against a number."""
    bits = (a.view(SIGNED[a.dtype.itemsize]) | b.view(SIGNED[b.dtype.itemsize])).view(a.dtype)
    return np.where(a == b, bits, np.fmin(a, b))


def maximum(a: Array, b: Array) -> Array:
    """The larger; +0 is above −0; a NaN loses against a number."""
    bits = (a.view(SIGNED[a.dtype.itemsize]) & b.view(SIGNED[b.dtype.itemsize])).view(a.dtype)
    return np.where(a == b, bits, np.fmax(a, b))


def minimum_nan(a: Array, b: Array) -> Array:
    """`minimum`, but a NaN wins (``min.NaN``)."""
    return np.where(np.isnan(a) | np.isnan(b), a + b, minimum(a, b))


def maximum_nan(a: Array, b: Array) -> Array:
    """`maximum`, but a NaN wins (``max.NaN``)."""
    return np.where(np.isnan(a) | np.isnan(b), a + b, maximum(a, b))


# ---- functions of the special function unit ------------------------------------------------------
# Evaluated in float64 and rounded to float32 once: at most 0.5 ulp from the exact value, where the PTX manual
# promises 1 to 2 ulp (rcp, sqrt, rsqrt, ex2) or an absolute error (lg2, sin, cos: 2^-20.5 and less).


def in_float64(function: Function) -> Function:
    """`function` evaluated in float64, its result rounded to the operand's type."""

    def run(*operands: Array) -> Array:
        return function(*(x.astype(np.float64) for x in operands)).astype(operands[0].dtype)

    return run


def reciprocal_root(x: Array) -> Array:
    """1 / √x."""
    return 1.0 / np.sqrt(x)


APPROXIMATE: dict[str, Function] = {
    "rcp": in_float64(np.reciprocal),
    "sqrt": in_float64(np.sqrt),
    "rsqrt": in_float64(reciprocal_root),
    "sin": in_float64(np.sin),
    "cos": in_float64(np.cos),
    "lg2": in_float64(np.log2),
    "ex2": in_float64(np.exp2),
    "tanh": in_float64(np.tanh),
}
