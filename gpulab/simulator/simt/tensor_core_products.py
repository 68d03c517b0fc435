"""What Blackwell's tensor cores compute: how operands decode, where results lie, and how sums round."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from . import small_floats
from .aligned_sums import cut_sum, fused_sum, powers, rounded_sum, sum_powers, whole_sum
from .matrix import ELEMENTS
from .tensor_core_descriptors import ProductDescriptor

Array = np.ndarray

# Fraction bits to which the terms of a sum are cut: of all products, and of those of 4-bit numbers, which are
# first added exactly in groups of 16 (measured bit for bit: MMA-Sim, Microsoft Research, 2025).
FRACTION_BITS, FRACTION_BITS_OF_GROUPS = 25, 35
GROUP = 16
SMALLEST_SCALE = {"ue8m0": -127, "ue4m3": -6}  # exponent of the smallest normal scale
# 16 numbers of 4 or 6 bits side by side in 16 bytes, of which the rest is padding: their form and bits.
PADDED = {"e2m1_p64": ("e2m1", 4), "e2m3_p32": ("e2m3", 6), "e3m2_p32": ("e3m2", 6)}
PIECE = 16
# Where a byte of Tensor Memory has a number, as a byte of the registers of ``mma.sync`` has it.
SHIFT_IN_BYTE = {4: 2, 6: 0}


@cache
def _pairs() -> Array:
    """The two numbers of a byte of e2m1, the lower half first: (256, 2)."""
    codes = np.arange(256)
    return small_floats.values("e2m1")[np.stack([codes & 15, codes >> 4], axis=1)].astype(np.float64)


def packed(type_: str) -> int:
    """How many elements a piece of `itemsize` bytes of shared memory holds."""
    return 2 if type_ == "e2m1" else 1


def itemsize(type_: str) -> int:
    """Bytes of an element in shared memory; of e2m1 two share a byte."""
    return 1 if type_ == "e2m1" or type_ in PADDED else ELEMENTS[type_].bits // 8


def smallest_exponent(type_: str) -> int:
    """The exponent of the smallest normal number."""
    if type_ in PADDED:
        return 1 - small_floats.FORMS[PADDED[type_][0]].bias
    return ELEMENTS[type_].smallest_exponent


def decode_shared_memory(memory: Array, octets: Array, type_: str) -> Array:
    """Elements as float64 of the bytes at `octets` (…, bytes) of a block's shared memory. Of padded types
    that is a byte for each element, as if they were that large: a piece of 16 bytes has 16 of them."""
    if type_ not in PADDED:
        return decode(memory[octets], type_)
    return small_floats.values(PADDED[type_][0])[padded_codes(memory, octets, type_)].astype(np.float64)


def padded_codes(memory: Array, octets: Array, type_: str) -> Array:
    """The bits of each number of a padded type, as uint16; see `decode_shared_memory`."""
    bits = PADDED[type_][1]
    first = bits * (octets % PIECE)
    at = octets // PIECE * PIECE + first // 8
    two = memory[at].astype(np.uint16) | memory[at + 1].astype(np.uint16) << np.uint16(8)
    return two >> (first % 8).astype(np.uint16) & np.uint16((1 << bits) - 1)


def in_byte(codes: Array, type_: str) -> Array:
    """Numbers of 4 or 6 bits as bytes of Tensor Memory: 6 bits at the lower end, 4 bits in the middle."""
    return (codes << np.uint16(SHIFT_IN_BYTE[PADDED[type_][1]])).astype(np.uint8)


def decode(octets: Array, type_: str) -> Array:
    """Elements as float64. `octets` (…, bytes) are uint8; the result is (…, elements). Padded types have
    a byte for each."""
    if type_ == "e2m1":
        return _pairs()[octets].reshape(*octets.shape[:-1], -1)
    if type_ in PADDED:
        form, bits = PADDED[type_]
        codes = octets >> np.uint8(SHIFT_IN_BYTE[bits]) & np.uint8((1 << bits) - 1)
        return small_floats.values(form)[codes].astype(np.float64)
    return ELEMENTS[type_].decode(np.ascontiguousarray(octets)).astype(np.float64)


def decode_scales(octets: Array, type_: str) -> Array:
    """Block scales as float64: ue8m0 is a power of two, ue4m3 an unsigned e4m3."""
    if type_ == "ue8m0":
        return np.where(octets == 255, np.nan, np.ldexp(1.0, octets.astype(np.int64) - 127))
    return ELEMENTS["e4m3"].decode(np.ascontiguousarray(octets & 0x7F)).astype(np.float64)


# ---- sums ----------------------------------------------------------------------------------------


class Operand(NamedTuple):
    """A or B: `values` (…, rows, k) as float64, and the `scales` (…, rows, blocks) of its blocks along k,
    None where it has none."""

    values: Array
    scales: Array | None = None


def multiply_accumulate(a: Operand, b: Operand, c: Array, product: ProductDescriptor) -> Array:
    """C + A·Bᵀ, (…, m, n). `a` has m rows, `b` has n, and `c` (…, m, n) is float64. The result is float32,
    float16 or int32, as the descriptor says."""
    if product.d_type == "s32":
        return whole_sum(a.values, b.values, c, product.saturates)
    if product.a_type == "e2m1":
        return rounded_sum(_sum_of_groups(a, b, c, product), product.d_type)
    (left, of_a), (right, of_b) = _with_powers(a, product.a_type), _with_powers(b, product.b_type)
    total = fused_sum(left, right, c, of_a, of_b, product.d_type, FRACTION_BITS)
    return rounded_sum(total, product.d_type)


def _with_powers(operand: Operand, type_: str) -> tuple[Array, Array]:
    """The numbers of an operand, and their powers of two. A scale, of which each row has one, moves both."""
    values, scales = operand
    of_values = powers(values, smallest_exponent(type_))
    if scales is None:
        return values, of_values
    return values * scales, of_values * powers(scales, SMALLEST_SCALE["ue8m0"])


def _sum_of_groups(a: Operand, b: Operand, c: Array, product: ProductDescriptor) -> Array:
    """C + A·Bᵀ of 4-bit numbers: 16 products at a time are added exactly, then scaled, then cut."""
    assert a.scales is not None and b.scales is not None, "Products of 4-bit numbers have block scales."
    count = product.k // GROUP
    scale_a, scale_b = (x.repeat(count // x.shape[-1], axis=-1) for x in (a.scales, b.scales))
    smallest = SMALLEST_SCALE[product.scale_type]
    of_a, of_b = powers(scale_a, smallest), powers(scale_b, smallest)
    terms = []
    top = sum_powers(c, product.d_type)
    with np.errstate(invalid="ignore", over="ignore"):  # a NaN among the scales is put right below
        for group in range(count):
            part = slice(group * GROUP, (group + 1) * GROUP)
            sums = a.values[..., part] @ b.values[..., part].swapaxes(-1, -2)
            terms.append(sums * scale_a[..., :, None, group] * scale_b[..., None, :, group])
            top = np.maximum(top, of_a[..., :, None, group] * of_b[..., None, :, group])
        plain = sum(terms, c)
        total = cut_sum(terms, c, top, FRACTION_BITS_OF_GROUPS)
    return np.where(np.isfinite(plain), total, plain)


# ---- where results lie -----------------------------------------------------------------------------


def result_columns(m: int, n: int, blocks: int, stationary: bool = False) -> int:
    """How many columns of Tensor Memory D takes in each block."""
    if stationary:
        return n * m // 128
    return n // 2 if has_halves_apart(m, blocks) else n


def has_halves_apart(m: int, blocks: int) -> bool:
    """Whether the right half of the columns of D is in lanes of its own."""
    return (m, blocks) == (128, 2)


@cache
def result_places(m: int, n: int, blocks: int, stationary: bool = False) -> tuple[Array, Array]:
    """(lane, column) of the elements (rows of one block, n) of D in that block's Tensor Memory.

    The figures "Layout A", "B", "D", "E", "F" and "G" of PTX ISA, section "Data path layout organization".
    """
    rows, columns = np.arange(m // blocks)[:, None], np.arange(n)[None, :]
    if stationary:  # halves or quarters of the columns are in lanes of their own
        width = n * m // 128
        rows, columns = rows + columns // width * m, columns % width
    elif m // blocks == 64:
        if blocks == 2:  # the right half of the columns is in the other half of the lanes
            rows, columns = rows + columns // (n // 2) * 64, columns % (n // 2)
        else:
            rows = rows // 16 * 32 + rows % 16
    lane, column = np.broadcast_arrays(rows, columns)
    return lane, column


def numbers(words: Array, d_type: str) -> Array:
    """Words of Tensor Memory (uint32) as the sums that they hold, float64."""
    if d_type == "f16":
        return words.astype(np.uint16).view(np.float16).astype(np.float64)
    return words.view(np.int32 if d_type == "s32" else np.float32).astype(np.float64)


def words(sums: Array) -> Array:
    """Sums of 16 or 32 bits as words of Tensor Memory (uint32), each in one of its own."""
    return sums.view(np.uint16).astype(np.uint32) if sums.itemsize == 2 else sums.view(np.uint32)
