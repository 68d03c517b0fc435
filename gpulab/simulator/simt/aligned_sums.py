"""Sums as tensor cores make them: exact products, aligned to the largest exponent, cut, added, rounded once.

How many bits are kept, and how a sum is rounded, depends on the generation and the types. MMA-Sim (Microsoft
Research, 2025) measured it bit for bit; `matrix`, `warpgroup_matrices` and `tensor_core_products` have the
numbers.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .compiled import aligned_sum, are_sums_worth_compiling
from .floats import canonical, round_toward

Array = np.ndarray

INTEGER_LIMITS = -(2**31), 2**31 - 1
ZERO_EXPONENT = -126  # what a zero counts as


def whole_sum(a: Array, b: Array, c: Array, saturates: bool) -> Array:
    """C + A·Bᵀ of whole numbers as int32: a (…, m, k), b (…, n, k), c (…, m, n). A sum that int32 cannot hold
    wraps around, or becomes the nearest number that it can hold where it `saturates`."""
    exact = np.matmul(a.astype(np.float64), b.swapaxes(-1, -2).astype(np.float64)) + c
    return (exact.clip(*INTEGER_LIMITS) if saturates else exact).astype(np.int64).astype(np.int32)


def fused_sum(
    a: Array, b: Array, c: Array, a_exponents: Array, b_exponents: Array, d_type: str, bits: int
) -> Array:
    """C + A·Bᵀ as float64, before it is rounded to `d_type` (f16 or f32).

    a (…, m, k), b (…, n, k) and c (…, m, n) are float64 and hold exact operands; `a_exponents` and
    `b_exponents` have the shapes of A and B. The terms of each sum are cut to `bits` fraction bits below the
    largest exponent among them.
    """
    with np.errstate(invalid="ignore"):  # infinities and NaN are put right below
        top = sum_exponents(c, d_type)
        if are_sums_worth_compiling(c.size * a.shape[-1]):
            total = _compiled_sum(a, b, c, a_exponents, b_exponents, top, bits)
        else:
            total = _sum_by_columns(a, b, c, a_exponents, b_exponents, top, bits)
        if not all(np.isfinite(x).all() for x in (a, b, c)):
            plain = (a[..., :, None, :] * b[..., None, :, :]).sum(axis=-1) + c
            total = np.where(np.isfinite(plain), total, plain)
    return total


def _compiled_sum(
    a: Array, b: Array, c: Array, a_exponents: Array, b_exponents: Array, top: Array, bits: int
) -> Array:
    numbers = (a, b.swapaxes(-1, -2), c)
    powers = (a_exponents, b_exponents.swapaxes(-1, -2), top)
    return aligned_sum()(
        *(np.ascontiguousarray(x, np.float64) for x in numbers),
        *(np.ascontiguousarray(x, np.int32) for x in powers),
        bits,
    )


def _sum_by_columns(
    a: Array, b: Array, c: Array, a_exponents: Array, b_exponents: Array, top: Array, bits: int
) -> Array:
    """One column of A at a time: a plane of m × n terms stays in the cache, all k of them do not."""
    columns = range(a.shape[-1])
    for k in columns:
        top = np.maximum(top, a_exponents[..., :, None, k] + b_exponents[..., None, :, k])
    return cut_sum((a[..., :, None, k] * b[..., None, :, k] for k in columns), c, top, bits)


def cut_sum(terms: Iterable[Array], c: Array, top: Array, bits: int) -> Array:
    """C and all `terms`, each an array of its own that may be overwritten, cut to `bits` fraction bits below
    the exponent `top`."""
    unit = np.ldexp(1.0, top - bits)
    scale = 1.0 / unit
    total = np.trunc(c * scale)
    for term in terms:
        scaled = np.multiply(term, scale, out=term if term.shape == scale.shape else None)
        total += np.trunc(scaled, out=scaled)
    return total * unit


def rounded_sum(total: Array, d_type: str) -> Array:
    """A sum as tensor cores round it: toward zero to float32, or to the nearest float16 for `d_type` f16."""
    with np.errstate(invalid="ignore", over="ignore"):
        if d_type == "f16":
            return canonical(total.astype(np.float16))
        nearest = total.astype(np.float32)
        error = np.where(np.isfinite(nearest), total - nearest.astype(np.float64), 0.0)
        return canonical(round_toward(nearest, error, "rz"))


def sum_exponents(c: Array, d_type: str) -> Array:
    """The exponents of the numbers to which a product is added, of type f16 or f32."""
    return exponents(c, -14 if d_type == "f16" else -126)


def exponents(x: Array, smallest: int) -> Array:
    """The exponent of each number, as tensor cores see it: not less than `smallest`, that of the smallest
    normal number of its type."""
    exponent = np.maximum(np.frexp(x)[1] - 1, smallest)
    return np.where(x == 0, ZERO_EXPONENT, exponent)
