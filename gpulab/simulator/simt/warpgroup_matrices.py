"""``wgmma``: its shapes and types, which thread holds which element, and how it adds.

A warpgroup is four warps. Each of them has 16 of the 64 rows, laid out as in ``mma.sync``'s fragments
(PTX ISA, "Register fragments and shared memory matrix layouts").
"""

from __future__ import annotations

from functools import cache

import numpy as np

from gpulab.simulator.ptx import Instruction, Vector

from .aligned_sums import fused_sum, powers, rounded_sum, whole_sum
from .matrix import ELEMENTS, Places
from .opcodes import matrix_shape

Array = np.ndarray

ROWS = 64
THREADS = 128
ROW_BYTES = 32  # that a row of A takes: k is as many elements as fit
FLOATING_COLUMNS = tuple(range(8, 257, 8))
INTEGER_COLUMNS = (8, 16, 24, *range(32, 257, 16))
# Types of A and B that go together → types that D may have.
RESULTS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("f16",): ("f16", "f32"),
    ("bf16",): ("f32",),
    ("tf32",): ("f32",),
    ("e4m3", "e5m2"): ("f16", "f32"),
    ("s8", "u8"): ("s32",),
}
# Fraction bits to which the terms of a sum are cut, and those that a float32 sum of FP8 products keeps
# (measured bit for bit on an H100: MMA-Sim, Microsoft Research).
FRACTION_BITS, FP8_FRACTION_BITS = 25, 13
FP8_KEPT = np.uint32(0xFFFFFFFF << (23 - FP8_FRACTION_BITS) & 0xFFFFFFFF)


def check(m: int, n: int, k: int, d: str, a: str, b: str, sparse: bool = False) -> None:
    """Raise ValueError, with the rule and the value, for a shape or types that ``wgmma`` does not have.

    `k` counts the columns of the full A; of a sparse one, half of them are stored.
    """
    results = next((d_types for together, d_types in RESULTS.items() if {a, b} <= {*together}), None)
    if results is None:
        raise ValueError(f"wgmma does not multiply {a} by {b}.")
    if d not in results:
        raise ValueError(f"wgmma adds products of {a} and {b} in {' or '.join(results)}, not in {d}.")
    columns = INTEGER_COLUMNS if ELEMENTS[a].is_integer else FLOATING_COLUMNS
    if n not in columns:
        rule = "8, 16, 24, or a multiple of 16 from 32" if columns is INTEGER_COLUMNS else "a multiple of 8"
        raise ValueError(f"wgmma with {a} has {rule} up to 256 columns, not {n}.")
    rule_of_k = columns_of_a(a) * (2 if sparse else 1)
    if (m, k) != (ROWS, rule_of_k):
        raise ValueError(
            f"{'Sparse wgmma' if sparse else 'wgmma'} with {a} has the shape m64n{n}k{rule_of_k}, "
            f"not m{m}n{n}k{k}."
        )


def columns_of_a(type_: str) -> int:
    """How many elements a row of A has as it is stored: k, and half of it if A is sparse."""
    return ROW_BYTES * 8 // ELEMENTS[type_].bits


def bytes_read(instruction: Instruction) -> int:
    """Bytes of shared memory that a ``wgmma.mma_async`` of one warpgroup reads: all of B, and of A as it is
    stored, unless that is in registers."""
    shape = matrix_shape(instruction)
    assert shape is not None, "Every wgmma has a shape."
    rows = shape.n * (2 if "sp" in instruction.parts else 1)
    return ROW_BYTES * (rows if isinstance(instruction.operands[1], Vector) else rows + ROWS)


# ---- who holds what ------------------------------------------------------------------------------


@cache
def result_places(n: int) -> Places:
    """Where each element of D is, both arrays of shape (128 threads, n / 2 elements).

    Elements are counted in the order of the registers; a register of float16 holds two.
    """
    thread, i = np.arange(THREADS)[:, None], np.arange(n // 2)
    return Places(_row(thread) + i // 2 % 2 * 8, thread % 4 * 2 + i % 2 + i // 4 * 8)


@cache
def operand_places(bits: int) -> Places:
    """Where each element of an A in registers is, both arrays of shape (128 threads, elements).

    There are four registers, each with 32 / `bits` elements, the lowest bits first.
    """
    packed = 32 // bits
    thread, i = np.arange(THREADS)[:, None], np.arange(4 * packed)
    register, part = np.divmod(i, packed)
    return Places(
        _row(thread) + register % 2 * 8,
        thread % 4 * packed + part + register // 2 * 4 * packed,
    )


def _row(thread: Array) -> Array:
    """The first row of a thread: 16 to a warp, one to four threads."""
    return thread // 32 * 16 + thread % 32 // 4


# ---- how it adds ---------------------------------------------------------------------------------


def multiply_accumulate(
    a: Array, b: Array, c: Array, a_type: str, b_type: str, d_type: str, saturates: bool = False
) -> Array:
    """C + A·B as Hopper's ``wgmma`` rounds it.

    a (…, m, k) and b (…, n, k) hold exact operands as float64; c (…, m, n) likewise. The result (…, m, n) is
    float32, float16 or int32, as `d_type` says. The terms of each sum are aligned to the largest exponent
    among them, cut to 25 fraction bits (13 for FP8), added, and rounded toward zero to float32, or to the
    nearest float16. A float32 sum of FP8 products keeps 13 fraction bits. A sum of integers that int32 cannot
    hold wraps around, or becomes the nearest number that it can hold where it `saturates`.
    """
    element, other = ELEMENTS[a_type], ELEMENTS[b_type]
    if element.is_integer:
        return whole_sum(a, b, c, saturates)
    bits = FP8_FRACTION_BITS if element.bits == 8 else FRACTION_BITS
    of_a, of_b = powers(a, element.smallest_exponent), powers(b, other.smallest_exponent)
    rounded = rounded_sum(fused_sum(a, b, c, of_a, of_b, d_type, bits), d_type)
    if d_type == "f16" or element.bits != 8:
        return rounded
    kept = (rounded.view(np.uint32) & FP8_KEPT).view(np.float32)
    return np.where(np.isnan(rounded), rounded, kept)
