"""Sums as tensor cores make them: exact products, aligned to the largest exponent, cut, added, rounded once.

How many bits are kept, and how a sum is rounded, depends on the generation and the types. MMA-Sim (Microsoft
Research, 2025) measured it bit for bit; `matrix`, `warpgroup_matrices` and `tensor_core_products` have the
numbers.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .compiled import aligned_sum, are_sums_worth_compiling, power, toward_zero
from .floats import canonical, round_toward

Array = np.ndarray

INTEGER_LIMITS = -(2**31), 2**31 - 1
EXPONENT = np.int64(2047 << 52)  # its bits in a float64
POWER_OF_ZERO = 2.0**-126  # what a zero counts as


def whole_sum(a: Array, b: Array, c: Array, saturates: bool) -> Array:
    """C + A·Bᵀ of whole numbers as int32: a (…, m, k), b (…, n, k), c (…, m, n). A sum that int32 cannot hold
    wraps around, or becomes the nearest number that it can hold where it `saturates`."""
    exact = np.matmul(a.astype(np.float64), b.swapaxes(-1, -2).astype(np.float64)) + c
    return (exact.clip(*INTEGER_LIMITS) if saturates else exact).astype(np.int64).astype(np.int32)


def fused_sum(
    a: Array, b: Array, c: Array, a_powers: Array, b_powers: Array, d_type: str, bits: int
) -> Array:
    """C + A·Bᵀ as float64, before it is rounded to `d_type` (f16 or f32).

    a (…, m, k), b (…, n, k) and c (…, m, n) are float64 and hold exact operands; `a_powers` and `b_powers`
    are those of A and B (`powers`). The terms of each sum are cut to `bits` fraction bits below the largest
    power among them.
    """
    with np.errstate(all="ignore"):  # infinities and NaN are put right below
        top = sum_powers(c, d_type)
        if are_sums_worth_compiling(c.size * a.shape[-1]):
            total = aligned_sum()(a, b, c, a_powers, b_powers, top, steps=2.0**bits)
        else:
            total = _sum_by_columns(a, b, c, a_powers, b_powers, top, bits)
        if not np.isfinite(total).all():
            plain = (a[..., :, None, :] * b[..., None, :, :]).sum(axis=-1) + c
            total = np.where(np.isfinite(plain), total, plain)
    return total


def _sum_by_columns(
    a: Array, b: Array, c: Array, a_powers: Array, b_powers: Array, top: Array, bits: int
) -> Array:
    """One column of A at a time: a plane of m × n terms stays in the cache, all k of them do not."""
    columns = range(a.shape[-1])
    for k in columns:
        top = np.maximum(top, a_powers[..., :, None, k] * b_powers[..., None, :, k])
    return cut_sum((a[..., :, None, k] * b[..., None, :, k] for k in columns), c, top, bits)


def cut_sum(terms: Iterable[Array], c: Array, top: Array, bits: int) -> Array:
    """C and all `terms`, each an array of its own that may be overwritten, cut to `bits` fraction bits below
    the power `top`."""
    steps = 2.0**bits
    scale = steps / top
    total = np.trunc(c * scale)
    for term in terms:
        scaled = np.multiply(term, scale, out=term if term.shape == scale.shape else None)
        total += np.trunc(scaled, out=scaled)
    return total * top / steps


def rounded_sum(total: Array, d_type: str) -> Array:
    """A sum as tensor cores round it: toward zero to float32, or to the nearest float16 for `d_type` f16."""
    with np.errstate(invalid="ignore", over="ignore"):
        if d_type == "f16":
            return canonical(total.astype(np.float16))
        nearest = total.astype(np.float32)
        if are_sums_worth_compiling(0):
            return canonical(toward_zero()(nearest.view(np.int32), nearest, total).view(np.float32))
        error = np.where(np.isfinite(nearest), total - nearest.astype(np.float64), 0.0)
        return canonical(round_toward(nearest, error, "rz"))


def sum_powers(c: Array, d_type: str) -> Array:
    """The powers of the numbers to which a product is added, of type f16 or f32."""
    return powers(c, -14 if d_type == "f16" else -126)


def powers(x: Array, smallest_exponent: int) -> Array:
    """The largest power of two that each number reaches, as tensor cores see it: not less than that of the
    smallest normal number of its type. Infinities and NaN have infinity."""
    bits, smallest = x.view(np.int64), 2.0**smallest_exponent
    if are_sums_worth_compiling(0):
        return power()(bits, *np.array([smallest, POWER_OF_ZERO]).view(np.int64)).view(np.float64)
    return np.where(x == 0, POWER_OF_ZERO, np.maximum((bits & EXPONENT).view(np.float64), smallest))
