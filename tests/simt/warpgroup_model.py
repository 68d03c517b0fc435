"""wgmma once more on single Python numbers, from the PTX manual: where each element is, and its exact sum."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from gpulab.simulator.simt.matrix_descriptors import MatrixDescriptor

from .layouts import canonical_one, swizzled_bit_by_bit

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8}
SMALLEST = {"f16": -14, "bf16": -126, "tf32": -126, "e4m3": -6, "e5m2": -14}  # exponent of a normal number


# ---- sparse A ------------------------------------------------------------------------------------


def place_of_code(type_: str, row: int, column: int, selector: int) -> tuple[int, int]:
    """(thread, lowest bit) of the four bits that tell of a column, from the manual's figures."""
    within, lower = row % 8, row % 16 >= 8
    first = 32 * (row // 16) + 4 * within
    if type_ in ("s8", "u8", "e4m3", "e5m2"):  # a row and 32 columns to a thread
        thread = {(False, 0): 0, (True, 0): 1, (False, 1): 2, (True, 1): 3}[lower, column // 32]
        return first + thread, column % 32 // 4 * 4
    across = 8 if type_ == "tf32" else 16  # columns to a thread, of two rows that are 8 apart
    bit = column % across // (across // 4) * 4
    return first + column // across + 2 * selector, bit + (16 if lower else 0)


# ---- sums ----------------------------------------------------------------------------------------


def exponent(x: float, smallest: int) -> int:
    return -126 if x == 0 else max(math.frexp(x)[1] - 1, smallest)


def one_sum(a: list[float], b: list[float], c: float, smallest: tuple[int, int, int], d: str, fp8: bool):
    """c + Σ a·b of one element, in whole numbers and fractions."""
    terms = [Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)] + [Fraction(c)]
    top = [exponent(x, smallest[0]) + exponent(y, smallest[1]) for x, y in zip(a, b, strict=True)]
    unit = Fraction(2) ** (max([*top, exponent(c, smallest[2])]) - (13 if fp8 else 25))
    exact = sum(math.trunc(term / unit) for term in terms) * unit
    if exact == 0:
        return 0.0
    if d == "f16":
        return float(np.float16(float(exact)))
    size = max(math.frexp(float(exact))[1] - 1, -126)
    kept = Fraction(2) ** (size - (13 if fp8 else 23))
    return float(math.trunc(exact / kept) * kept)


def one_scaled_sum(a: list[float], b: list[float], scales_a: list[float], scales_b: list[float], c: float):
    """c + Σ a·b of 4-bit numbers: 16 products at a time are exact, then scaled, then cut to 35 bits.

    `scales_a` and `scales_b` hold one scale for each number.
    """
    groups = range(0, len(a), 16)
    terms = [
        sum(Fraction(a[i]) * Fraction(b[i]) for i in range(group, group + 16))
        * Fraction(scales_a[group])
        * Fraction(scales_b[group])
        for group in groups
    ]
    top = [math.frexp(scales_a[group])[1] + math.frexp(scales_b[group])[1] - 2 for group in groups]
    unit = Fraction(2) ** (max([*top, exponent(c, -126)]) - 35)
    exact = sum(math.trunc(term / unit) for term in [*terms, Fraction(c)]) * unit
    if exact == 0:
        return 0.0
    kept = Fraction(2) ** (max(math.frexp(float(exact))[1] - 1, -126) - 23)
    return float(math.trunc(exact / kept) * kept)


# ---- elements ------------------------------------------------------------------------------------


def number(word: int, type_: str) -> float:
    """What the bits of one element mean."""
    match type_:
        case "s8":
            return float(word - 256 if word > 127 else word)
        case "u8":
            return float(word)
        case "f16":
            return float(np.uint16(word).view(np.float16))
        case "bf16":
            return float(np.uint32(word << 16).view(np.float32))
        case "tf32":
            return float(np.uint32(word & 0xFFFFE000).view(np.float32))
        case "e5m2":
            return float(np.uint16(word << 8).view(np.float16))
    sign, exponent_, fraction = -1 if word >> 7 else 1, word >> 3 & 15, word & 7
    if exponent_ == 15 and fraction == 7:
        return math.nan
    if exponent_ == 0:
        return sign * fraction * 2.0**-9
    return sign * (8 + fraction) * 2.0 ** (exponent_ - 10)


def in_shared(memory: bytes, descriptor: MatrixDescriptor, mn: int, k: int, size: int, k_major: bool) -> int:
    """The bits of an element of an operand in shared memory."""
    offsets = descriptor.leading, descriptor.stride
    plain = descriptor.start + canonical_one(mn, k, size, descriptor.span, k_major, *offsets)
    place = swizzled_bit_by_bit(plain, descriptor.span)
    return int.from_bytes(memory[place : place + size], "little")


def in_registers(words: np.ndarray, row: int, column: int, bits: int) -> int:
    """The bits of an element of an A in registers: `words` (128 threads, 4)."""
    packed = 32 // bits
    thread = 32 * (row // 16) + 4 * (row % 8) + column // packed % 4
    register = (1 if row % 16 >= 8 else 0) + (2 if column >= 4 * packed else 0)
    return int(words[thread, register]) >> bits * (column % packed) & (1 << bits) - 1


def place_of_result(row: int, column: int) -> tuple[int, int]:
    """(thread, number among its elements) of an element of D."""
    thread = 32 * (row // 16) + 4 * (row % 8) + column % 8 // 2
    return thread, 4 * (column // 8) + 2 * (row % 16 >= 8) + column % 2
