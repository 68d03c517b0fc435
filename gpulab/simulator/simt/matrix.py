"""Tensor-core operations of a warp: ``mma.sync``, ``ldmatrix``, ``stmatrix``, ``wmma``.

Which lane holds which element is data: index tables made once for each shape. How the cores add is modelled
on what was measured bit for bit for each generation (MMA-Sim, Microsoft Research): products are exact,
aligned to the largest exponent among products and accumulator, cut to F fraction bits, added, and rounded
toward zero to float32, or to nearest float16.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from . import small_floats
from .aligned_sums import fused_sum, powers, rounded_sum, whole_sum
from .floats import fused
from .packed import from_bf16

Array = np.ndarray

# Fraction bits to which the terms of a sum are cut, by the first digits of the capability.
FRACTION_BITS = {"7.0": 23, "7.5": 24, "8": 24, "9": 25, "10": 25, "12": 25}
# Generations that do a long row in two halves, the first sum going into the second.
SPLITS_ROWS = ("8",)


@dataclass(frozen=True)
class Element:
    """An operand type: `bits` an element, and how register contents become numbers (float64, or int64)."""

    bits: int
    decode: Callable[[Array], Array]
    smallest_exponent: int = -126  # of a normal number; denormals share it
    is_integer: bool = False


def _float16(words: Array) -> Array:
    return words.view(np.float16).astype(np.float64)


def _bfloat16(words: Array) -> Array:
    return from_bf16(words.view(np.int16)).astype(np.float64)


def _tf32(words: Array) -> Array:
    return (words.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)


def _fp8(form: str) -> Callable[[Array], Array]:
    return lambda words: small_floats.values(form)[words.view(np.uint8)].astype(np.float64)


ELEMENTS: dict[str, Element] = {
    "f16": Element(16, _float16, -14),
    "bf16": Element(16, _bfloat16),
    "tf32": Element(32, _tf32),
    "e4m3": Element(8, _fp8("e4m3"), -6),
    "e5m2": Element(8, _fp8("e5m2"), -14),
    "s8": Element(8, lambda w: w.view(np.int8).astype(np.int64), is_integer=True),
    "u8": Element(8, lambda w: w.view(np.uint8).astype(np.int64), is_integer=True),
    "f64": Element(64, lambda w: w.view(np.float64)),
}


# ---- how tensor cores add -------------------------------------------------------------------------


def fraction_bits(target: str) -> int:
    """F of a target such as ``sm_80``."""
    digits = target.removeprefix("sm_").rstrip("af")
    major, minor = digits[:-1], digits[-1]
    return FRACTION_BITS.get(f"{major}.{minor}", FRACTION_BITS.get(major, 25))


def splits_rows(target: str) -> bool:
    """Whether the target sums f16 k16, tf32 k8 and fp8 k32 in two halves."""
    return target.removeprefix("sm_").rstrip("af")[:-1] in SPLITS_ROWS


def matrix_product(
    a: Array,
    b: Array,
    c: Array,
    elements: tuple[Element, Element],
    to: np.dtype,
    target: str,
    wide_row: int,
    saturates: bool = False,
) -> Array:
    """D = A·Bᵀ + C in the arithmetic of the target. a (…, m, k), b (…, n, k), c (…, m, n); `elements` are
    those of A and B. `wide_row` is the k that some targets do in two halves. Only integers saturate."""
    of_a, of_b = elements
    if of_a.is_integer:
        return whole_sum(a, b, c, saturates)
    if of_a.bits == 64:
        total = c
        for k in range(a.shape[-1]):
            total = fused(*np.broadcast_arrays(a[..., :, None, k], b[..., None, :, k], total))
        return total
    bits = fraction_bits(target)
    reduced = of_a.bits == 8 and target.startswith("sm_89")
    if reduced:
        bits = 13
    d_type = "f16" if to == np.float16 else "f32"
    a_powers, b_powers = powers(a, of_a.smallest_exponent), powers(b, of_b.smallest_exponent)
    depth = a.shape[-1]
    halves = splits_rows(target) and depth == wide_row
    total = c
    for part in (slice(depth // 2), slice(depth // 2, depth)) if halves else (slice(depth),):
        total = fused_sum(
            a[..., part], b[..., part], total, a_powers[..., part], b_powers[..., part], d_type, bits
        )
        result = _narrowed(rounded_sum(total, d_type), reduced)
        total = result.astype(np.float64)
    return result


def _narrowed(x: Array, reduced: bool) -> Array:
    """Ada's FP8 sums keep 13 bits of mantissa."""
    if not reduced or x.dtype != np.float32:
        return x
    return (x.view(np.uint32) & np.uint32(0xFFFFFC00)).view(np.float32)


# ---- who holds what -------------------------------------------------------------------------------------


class Places(NamedTuple):
    """Which element of a matrix each thread holds: its row and its column, both (threads, elements)."""

    rows: Array
    columns: Array


class Tables(NamedTuple):
    """Index tables of a fragment's operands.

    `a` (m, k) and `b` (n, k): position of the element among a warp's operands laid out as [lane][element];
    `c` (m, n) likewise; `d` (32, elements): position in the m × n result.
    """

    a: Array
    b: Array
    c: Array
    d: Array


@cache
def mma_tables(m: int, n: int, k: int, bits: int) -> Tables:
    """Index tables of ``mma.sync`` (PTX ISA, figures of the matrix fragments)."""
    per_register = max(32 // bits, 1)
    group, member = np.arange(32) // 4, np.arange(32) % 4
    if bits == 64 and m == 8:
        a_places = [(group, member)]
        b_places = [(group, member)]
    else:
        a_places, b_places = [], []
        for block in range(0, k, 4 * per_register):
            for row in range(0, m, 8):
                a_places += [(group + row, block + member * per_register + i) for i in range(per_register)]
            b_places += [(group, block + member * per_register + i) for i in range(per_register)]
    a_table, b_table = _inverse(a_places, (m, k)), _inverse(b_places, (n, k))
    c_places = [(group + row, member * 2 + i) for row in range(0, m, 8) for i in range(2)]
    c_table = _inverse(c_places, (m, n))
    d_table = np.stack([row * n + column for row, column in c_places], axis=1)
    return Tables(a_table, b_table, c_table, d_table)


def _inverse(places: list[tuple[Array, Array]], shape: tuple[int, int]) -> Array:
    """From "element i of each lane is (row, column)" to "(row, column) is element … of the warp"."""
    table = np.full(shape, -1, np.int64)
    for i, (row, column) in enumerate(places):
        table[row, column] = np.arange(32) * len(places) + i
    return table


@cache
def wmma_tables(role: str, m: int, n: int, k: int, elements: int) -> Places:
    """Which matrix element each lane holds in a ``wmma`` fragment.

    PTX leaves this layout open, so ours is as good as any: the lanes walk through the matrix in order. Where
    a fragment has room for every element twice, the upper half of the warp repeats the lower.
    """
    height, width = {"a": (m, k), "b": (k, n)}.get(role, (m, n))
    flat = np.arange(32 * elements) % (height * width)
    return Places((flat // width).reshape(32, elements), (flat % width).reshape(32, elements))
