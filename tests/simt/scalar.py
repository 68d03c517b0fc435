"""PTX arithmetic once more, on single Python numbers and exact fractions: slow, plain, and written
independently."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

FORMATS = {
    "f16": (11, -14, 15),
    "bf16": (8, -126, 127),
    "f32": (24, -126, 127),
    "f64": (53, -1022, 1023),
}  # digits, smallest and largest exponent


def wrap(value: int, bits: int, signed: bool) -> int:
    """`value` cut to `bits`."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def quotient(a: int, b: int) -> int:
    """Division toward zero."""
    q = abs(a) // abs(b)
    return -q if (a < 0) != (b < 0) else q


def round_exact(exact: Fraction, form: str, mode: str = "rn", negative_zero: bool = False) -> float:
    """`exact` as the nearest number of a format, in a rounding mode (rn to even, rz, rm, rp)."""
    digits, low, high = FORMATS[form]
    if exact == 0:
        return -0.0 if negative_zero else 0.0
    sign = -1 if exact < 0 else 1
    size = abs(exact)
    exponent = max(_floor_log2(size), low)
    unit = Fraction(2) ** (exponent - digits + 1)
    steps, rest = divmod(size, unit)
    up = {
        "rz": False,
        "rm": sign < 0 and rest > 0,
        "rp": sign > 0 and rest > 0,
        "rn": rest * 2 > unit or (rest * 2 == unit and steps % 2 == 1),
    }[mode]
    result = (steps + up) * unit
    largest = (2 - Fraction(2) ** (1 - digits)) * Fraction(2) ** high
    if result > largest:
        toward_zero = mode == "rz" or (mode == "rm" and sign > 0) or (mode == "rp" and sign < 0)
        return sign * (float(largest) if toward_zero else math.inf)
    return sign * float(result) if result else math.copysign(0.0, sign)


def _floor_log2(x: Fraction) -> int:
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess - 1 if Fraction(2) ** guess > x else guess


def multiply_add(a: float, b: float, c: float, form: str, mode: str = "rn") -> float:
    """a·b + c rounded once; NaN as math.nan."""
    if any(map(math.isnan, (a, b, c))) or (math.isinf(a) and b == 0) or (math.isinf(b) and a == 0):
        return math.nan
    if math.isinf(a) or math.isinf(b):
        product = math.copysign(math.inf, a) * math.copysign(1, b)
        return math.nan if math.isinf(c) and c != product else product
    if math.isinf(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        signs = {math.copysign(1, a) * math.copysign(1, b), math.copysign(1, c)}
        product_is_zero = a == 0 or b == 0
        if product_is_zero and c == 0:
            return -0.0 if signs == {-1.0} else (0.0 if signs == {1.0} or mode != "rm" else -0.0)
        return -0.0 if mode == "rm" else 0.0
    return round_exact(exact, form, mode)


def bits_of(values: list[float], dtype: str) -> np.ndarray:
    """Floats as an array, every NaN as PTX writes it (f32 and f16)."""
    array = np.array(values, dtype)
    nan = {2: 0x7FFF, 4: 0x7FFFFFFF, 8: 0x7FF8000000000000}[array.itemsize]
    raw = array.view(f"u{array.itemsize}").copy()
    raw[np.isnan(array)] = nan
    return raw.view(dtype)
