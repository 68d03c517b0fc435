"""What Blackwell's tensor cores compute: how operands decode, where results lie, and how sums round."""

from __future__ import annotations

from functools import cache

import numpy as np

from .matrix import ELEMENTS
from .tensor_core_descriptors import ProductDescriptor
from .warpgroup_matrices import INTEGER_LIMITS, fused_sum, rounded_sum

Array = np.ndarray

# Fraction bits to which the terms of a sum are cut (MMA-Sim, Microsoft Research: as Hopper's for float16, and
# Blackwell's FP8 sums keep as many).
FRACTION_BITS = 25
# Sums of scaled blocks of 4-bit numbers: nobody has published to how many bits they are cut. They are exact
# here, and rounded once.
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float64)
SMALLEST_EXPONENT = {"e2m1": 0, "e2m3": 0, "e3m2": -2}


@cache
def _pairs() -> Array:
    """The two numbers of a byte of e2m1, the lower half first: (256, 2)."""
    codes = np.arange(256)
    halves = np.stack([codes & 15, codes >> 4], axis=1)
    return np.where(halves & 8, -1.0, 1.0) * E2M1[halves & 7]


def itemsize(type_: str) -> int:
    """Bytes of an element in shared memory; of e2m1 two share a byte."""
    return 1 if type_ == "e2m1" else ELEMENTS[type_].bits // 8


def decode(octets: Array, type_: str) -> Array:
    """Elements as float64. `octets` (…, bytes) are uint8; the result is (…, elements)."""
    if type_ == "e2m1":
        return _pairs()[octets].reshape(*octets.shape[:-1], -1)
    return ELEMENTS[type_].decode(np.ascontiguousarray(octets)).astype(np.float64)


def decode_scales(octets: Array, type_: str) -> Array:
    """Block scales as float64: ue8m0 is a power of two, ue4m3 an unsigned e4m3."""
    if type_ == "ue8m0":
        return np.where(octets == 255, np.nan, np.ldexp(1.0, octets.astype(np.int64) - 127))
    return ELEMENTS["e4m3"].decode(np.ascontiguousarray(octets & 0x7F)).astype(np.float64)


def multiply_accumulate(a: Array, b: Array, c: Array, product: ProductDescriptor) -> Array:
    """C + A·Bᵀ: a (m, k), b (n, k), c (m, n) float64; the result (m, n) is float32, float16 or int32."""
    if product.d_type == "s32":
        exact = a @ b.T + c
        return (exact.clip(*INTEGER_LIMITS) if product.saturates else exact).astype(np.int64).astype(np.int32)
    if product.scale_type:
        with np.errstate(invalid="ignore", over="ignore"):
            total = a @ b.T + c
    else:
        smallest = _smallest(product.a_type), _smallest(product.b_type)
        total = fused_sum(a, b, c, *smallest, product.d_type, FRACTION_BITS)
    return rounded_sum(total, product.d_type)


def _smallest(type_: str) -> int:
    return SMALLEST_EXPONENT.get(type_) or ELEMENTS[type_].smallest_exponent


def result_lanes(m: int, n: int, blocks: int) -> tuple[Array, Array]:
    """(lane, column) of the elements (rows of one block, n) of D in that block's Tensor Memory.

    The figures "Layout A", "B", "D" and "F" of PTX ISA, section "Data path layout organization".
    """
    rows, columns = np.arange(m // blocks)[:, None], np.arange(n)[None, :]
    if m // blocks == 128:
        return np.broadcast_arrays(rows, columns)  # type: ignore[return-value]
    if blocks == 2:  # 64 rows of each block: the right half of the columns is in the lower half of the lanes
        return np.broadcast_arrays(rows + columns // (n // 2) * 64, columns % (n // 2))  # type: ignore[return-value]
    return np.broadcast_arrays(rows // 16 * 32 + rows % 16, columns)  # type: ignore[return-value]
