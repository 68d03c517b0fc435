"""Floats of 8, 6 and 4 bits, and the powers of two that scale blocks of them: codes and values.

Formats: OCP 8-bit Floating Point Specification and Microscaling Formats (MX) Specification. What becomes of
numbers that a format does not have, PTX says under ``cvt``; NVIDIA's headers cuda_fp8.hpp, cuda_fp6.hpp and
cuda_fp4.hpp do the same in integers for GPUs without these instructions.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

Array = np.ndarray


class Form(NamedTuple):
    """A format: a sign, then bits of exponent and mantissa. NaN becomes `nan` if it has one, else the largest
    number."""

    exponent_bits: int
    mantissa_bits: int
    bias: int
    largest: float
    nan: int | None = None

    @property
    def sign(self) -> int:
        """The bit of the sign in a code."""
        return 1 << (self.exponent_bits + self.mantissa_bits)


FORMS = {
    "e4m3": Form(4, 3, 7, 448.0, 0x7F),
    "e5m2": Form(5, 2, 15, 57344.0, 0x7F),
    "e2m3": Form(2, 3, 1, 7.5),
    "e3m2": Form(3, 2, 3, 28.0),
    "e2m1": Form(2, 1, 1, 6.0),
}
SCALES_NAN = 0xFF  # of ue8m0


@cache
def values(form: str) -> Array:
    """The value of each code, float32. Of the codes for no number, e5m2 has infinities and NaN, e4m3 has NaN
    alone (S.1111.111), and the smaller formats have none.

    >>> values("e2m1")[:8].tolist()
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    """
    exponent_bits, mantissa_bits, bias, _, _ = FORMS[form]
    codes = np.arange(2 * FORMS[form].sign)
    exponent = (codes >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = codes & ((1 << mantissa_bits) - 1)
    fraction = mantissa / (1 << mantissa_bits)
    value = np.where(exponent == 0, np.ldexp(fraction, 1 - bias), np.ldexp(1 + fraction, exponent - bias))
    if form == "e5m2":
        value = np.where(exponent == 31, np.where(mantissa == 0, np.inf, np.nan), value)
    elif form == "e4m3":
        value = np.where((codes & 0x7F) == 0x7F, np.nan, value)
    return np.where(codes & FORMS[form].sign, -value, value).astype(np.float32)


def encode(x: Array, form: str, mode: str = "rn") -> Array:
    """Floats → uint8 codes, to nearest even or toward zero (``rz``); beyond the range the largest value
    (``satfinite``)."""
    sign, largest, nan = FORMS[form].sign, FORMS[form].largest, FORMS[form].nan
    table = values(form)
    last = int(np.flatnonzero(table[:sign] == largest)[0])
    positive = table[: last + 1].astype(np.float64)
    size = np.abs(x.astype(np.float64))
    if mode == "rz":
        code = np.searchsorted(positive, size, side="right") - 1
    else:
        middles = (positive[1:] + positive[:-1]) / 2
        code = np.searchsorted(middles, size, side="left")  # a tie goes down …
        tie = (code < last) & (size == middles[np.minimum(code, last - 1)])
        code = np.where(tie & (code % 2 == 1), code + 1, code)  # … unless that code is odd
    missing = np.isnan(x)
    negative = np.signbit(x) & ~(missing & (nan is None))
    code = np.where(missing, last if nan is None else nan, code)
    return (code | np.where(negative, sign, 0)).astype(np.uint8)


def scales(x: Array, mode: str, saturates: bool) -> Array:
    """float32 → uint8 codes of ue8m0, powers of two from 2⁻¹²⁷ to 2¹²⁷, without a sign: toward zero or, with
    ``rp``, to the next larger one. What is no number, and what is too large, is NaN; with ``satfinite`` only
    NaN is."""
    bits = x.view(np.uint32) & np.uint32(0x7FFF_FFFF)
    code = (bits >> np.uint32(23)).astype(np.int32)
    if mode == "rp":
        more = (bits & np.uint32(0x7F_FFFF)) != 0
        code = code + (more & (bits > np.uint32(0x0040_0000)) & (bits < np.uint32(0x7F80_0000)))
    if saturates:
        code = np.where((code == SCALES_NAN) & ~np.isnan(x), SCALES_NAN - 1, code)
    return code.astype(np.uint8)


def of_scales(codes: Array) -> Array:
    """Codes of ue8m0 → int16 bits of bfloat16, which holds them all."""
    wide = codes.astype(np.int16)
    bits = np.where(wide == 0, np.int16(0x0040), wide << np.int16(7))  # 2⁻¹²⁷ is subnormal there
    return np.where(wide == SCALES_NAN, np.int16(0x7FFF), bits)
