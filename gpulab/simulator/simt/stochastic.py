"""``cvt.rs``: floats rounded up or down by random bits, up the more often the nearer they are.

The bits of a number that the target has no room for are cut to as many as there are random bits for it, the
random bits are added, and a carry makes the next larger number of the target (PTX ISA, "cvt"). Each number
takes bits of one register: the upper half of a pair 13 or 16 bits from bit 16 on and the lower half as many
from bit 0 on; of four numbers each takes the byte that it would have if all of them were bytes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import small_floats
from .opcodes import Operation
from .small_floats import FORMS
from .types import DTYPES, I32, U32

Array = np.ndarray
Clip = Callable[[Array], Array]

F4 = np.dtype("f4")
HALF_BITS = np.dtype("i2")
RANDOM_BITS = {"f16x2": 13, "bf16x2": 16}
BITS_OF_FOUR = 8
MANTISSA, SMALLEST, LARGEST = {"f16": 10, "bf16": 7}, {"f16": -14, "bf16": -126}, {"f16": 15, "bf16": 127}
NAN = 0x7FFF


def conversion(target: str, satfinite: bool, clip: Clip) -> Operation | None:
    """``cvt.rs`` from float32 to pairs of halves or to four small floats. `clip` is what ``relu`` does."""
    if target in RANDOM_BITS:
        return Operation(_pair(target, satfinite, clip), (F4, F4, I32), (I32,))
    form = target.removesuffix("x4")
    if form not in FORMS or form == target:
        return None
    return Operation(_four(form, clip), (F4,) * 4 + (I32,), (DTYPES["b16"] if form == "e2m1" else I32,))


def _pair(target: str, satfinite: bool, clip: Clip) -> Callable[..., Array]:
    bits = RANDOM_BITS[target]

    def run(upper: Array, lower: Array, random: Array) -> Array:
        drawn = random.view(U32) & np.uint32((1 << bits) - 1), random.view(U32) >> np.uint32(16)
        halves = [
            _half(clip(x), target.removesuffix("x2"), satfinite, r & np.uint32((1 << bits) - 1), bits)
            for x, r in zip((lower, upper), drawn, strict=True)
        ]
        low, high = (half.astype(U32) for half in halves)
        return (low | high << np.uint32(16)).view(I32)

    return run


def _half(x: Array, form: str, satfinite: bool, random: Array, bits: int) -> Array:
    """float32 → bits of float16 or bfloat16."""
    mantissa, least, most = MANTISSA[form], SMALLEST[form], LARGEST[form]
    size = np.where(np.isfinite(x), np.abs(x.astype(np.float64)), 0.0)
    exponent = np.where(size > 0, np.maximum(np.frexp(size)[1] - 1, least), least)
    steps = np.ldexp(size, mantissa - exponent)  # in units of the last place
    whole = np.floor(steps)
    cut = np.floor((steps - whole) * (1 << bits))
    count = whole + (cut + random >= 1 << bits)
    code = ((exponent - least) << mantissa) + count.astype(np.int64)
    infinite = (most - least + 2) << mantissa
    code = np.where(np.isinf(x), infinite, np.minimum(code, infinite))
    if satfinite:
        code = np.minimum(code, infinite - 1)
    return np.where(np.isnan(x), NAN, code | np.where(np.signbit(x), 0x8000, 0)).astype(np.uint16)


def _four(form: str, clip: Clip) -> Callable[..., Array]:
    width = 4 if form == "e2m1" else 8

    def run(*operands: Array) -> Array:
        *numbers, random = operands
        packed = np.zeros((1, 1), U32)
        for place, x in enumerate(reversed(numbers)):  # the last one is the lowest
            drawn = random.view(U32) >> np.uint32(BITS_OF_FOUR * place) & np.uint32(255)
            packed = packed | _small(clip(x), form, drawn).astype(U32) << np.uint32(width * place)
        return packed.astype(np.uint16).view(HALF_BITS) if form == "e2m1" else packed.view(I32)

    return run


def _small(x: Array, form: str, random: Array) -> Array:
    """float32 → codes of a small float; what is too large becomes its largest number."""
    sign, largest, nan = FORMS[form].sign, FORMS[form].largest, FORMS[form].nan
    positive = small_floats.values(form)[:sign].astype(np.float64)
    last = int(np.flatnonzero(positive == largest)[0])
    size = np.minimum(np.where(np.isnan(x), largest, np.abs(x.astype(np.float64))), largest)
    low = np.searchsorted(positive[: last + 1], size, side="right") - 1
    gap = positive[np.minimum(low + 1, last)] - positive[low]
    cut = np.floor((size - positive[low]) / np.where(gap > 0, gap, 1.0) * (1 << BITS_OF_FOUR))
    code = low + (cut + random >= 1 << BITS_OF_FOUR) * (low < last)
    missing = np.isnan(x)
    code = np.where(missing & (nan is not None), nan or 0, code)
    return code | np.where(np.signbit(x) & ~(missing & (nan is None)), sign, 0)
