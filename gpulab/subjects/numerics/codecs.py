"""Numbers to codes and back, for every format of `formats.py`, exact and fast.

One definition, in float64, says what every code means and how a number is rounded (`exact_codes`,
`_exact_values`). From it tables are made once: all codes of a format of up to 16 bits → their value, and
the upper half of a float32 → its code. The lower half of a float32 matters to a short mantissa only by
being zero or not, so one bit of the table's index stands for it (a **sticky bit**).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import numpy as np

from .formats import Format, find

Array = np.ndarray[Any, np.dtype[Any]]
Rounding = Literal["nearest", "toward zero", "stochastic"]

PIECE = 1 << 16  # elements that are worked on at once: they stay in the cache of a core
TABLE_MANTISSA = 5  # of the 7 mantissa bits in the upper half of a float32: one to round, one is sticky


def encode(
    values: Any,
    format: str | Format,
    rounding: Rounding = "nearest",
    *,
    saturate: bool = False,
    generator: np.random.Generator | None = None,
) -> Array:
    """The codes of `values` (any shape; taken as float32, for FP64 as float64), as unsigned integers.

    `rounding` is ``nearest`` (ties to the even code; in E8M0 up, as PyTorch does), ``toward zero``, or
    ``stochastic``: up with the probability that the number's place between its neighbours gives, by
    `generator`. What is too large becomes infinity, where there is none NaN, where there is neither or
    with `saturate` the largest number. NaN becomes NaN, in a format without one −0.

    Raises UnknownFormat; ValueError for a rounding that does not exist, and for stochastic rounding without
    a generator.

    >>> [hex(code) for code in encode([1.0, -2.0], "FP16")]
    ['0x3c00', '0xc000']
    """
    form = find(format)
    if rounding not in ("nearest", "toward zero", "stochastic"):
        raise ValueError(f"rounding is 'nearest', 'toward zero' or 'stochastic', not {rounding!r}")
    if rounding == "stochastic" and generator is None:
        raise ValueError("stochastic rounding needs generator=np.random.default_rng(seed)")
    wide = np.float64 if form.name == "FP64" else np.float32
    numbers = np.asarray(values).astype(wide, copy=False)
    if form.name in ("FP64", "FP32") and not saturate:
        return numbers.view(np.uint64 if wide is np.float64 else np.uint32).copy()
    flat = np.ascontiguousarray(numbers).reshape(-1)
    codes = np.empty(flat.size, code_dtype(form))
    for start in range(0, flat.size, PIECE):
        part = flat[start : start + PIECE]
        to = codes[start : start + PIECE]
        if rounding == "nearest":
            _nearest(part, form, saturate, to)
        else:
            draws = generator.random(part.size) if generator and rounding == "stochastic" else None
            to[:] = exact_codes(part.astype(np.float64), form, saturate, up=draws, down=draws is None)
    return codes.reshape(numbers.shape)


def decode(codes: Any, format: str | Format) -> Array:
    """What codes mean, as float32 (FP64: float64), which holds every format's numbers exactly.

    Raises UnknownFormat, and ValueError for a code that has too many bits.

    >>> decode([0x3C00, 0xC000], "FP16").tolist()
    [1.0, -2.0]
    """
    form = find(format)
    given = np.asarray(codes)
    if form.name == "FP64":
        return given.astype(np.uint64, copy=False).view(np.float64).copy()
    if given.dtype.itemsize * 8 > form.bits and given.size and int(given.max()) >> form.bits:
        raise ValueError(f"{form.name} has {form.bits} bits: {int(given.max())} is no code of it")
    flat = np.ascontiguousarray(given, code_dtype(form)).reshape(-1)
    values = np.empty(flat.size, np.float32)
    for start in range(0, flat.size, PIECE):
        piece = flat[start : start + PIECE]
        to = values[start : start + PIECE]
        if form.exponent == 8:
            _widened(form)(piece, out=to.view(np.uint32))
        else:
            np.take(_values(form), piece, out=to, mode="clip")
    return values.reshape(given.shape)


def quantize(values: Any, format: str | Format, rounding: Rounding = "nearest", **options: Any) -> Array:
    """`values` rounded to numbers that `format` has, as float32: what `decode` makes of `encode`.

    `rounding` and the further `options` are those of `encode`, which also says what it raises.

    >>> quantize([0.3, 5.1], "E2M1").tolist()
    [0.5, 6.0]
    """
    return decode(encode(values, format, rounding, **options), format)


def representable(format: str | Format) -> Array:
    """All finite numbers of a format of up to 16 bits, each once, ascending, float64.

    >>> representable("E2M1").tolist()
    [-6.0, -4.0, -3.0, -2.0, -1.5, -1.0, -0.5, -0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    """
    form = find(format)
    if form.bits > 16:
        raise ValueError(f"{form.name} has 2^{form.bits} codes: too many to list")
    values = _values(form).astype(np.float64)
    return np.unique(values[np.isfinite(values)])


def neighbours(value: float, format: str | Format) -> tuple[float, float]:
    """The largest number of the format that is at most `value`, and the smallest that is at least `value`.

    ±infinity where there is none.

    >>> neighbours(0.3, "E2M1")
    (0.0, 0.5)
    """
    form = find(format)
    below = float(decode(encode(np.array(abs(value)), form, "toward zero", saturate=True), form))
    if abs(value) > form.largest:
        pair = (form.largest, np.inf)
    elif below == abs(value):
        pair = (below, below)
    else:
        code = int(encode(np.array(abs(value)), form, "toward zero"))
        pair = (below, float(decode(np.array(code + 1, code_dtype(form)), form)))
    return (-pair[1], -pair[0]) if value < 0 else pair


def code_dtype(form: Format) -> type[np.unsignedinteger[Any]]:
    """The smallest unsigned integer that holds a code."""
    return next(
        t for t in (np.uint8, np.uint16, np.uint32, np.uint64) if np.dtype(t).itemsize * 8 >= form.bits
    )


# ---------------------------------------------------------------- the definition


def _exact_values(form: Format) -> Array:
    """The value of every code, float64."""
    codes = np.arange(1 << form.bits)
    magnitude = codes & ((1 << (form.exponent + form.mantissa)) - 1)
    field, fraction = magnitude >> form.mantissa, magnitude & ((1 << form.mantissa) - 1)
    if form.subnormals:
        significand = fraction + np.where(field > 0, 1 << form.mantissa, 0)
        power = np.maximum(field, 1) - form.bias - form.mantissa
    else:
        significand, power = np.ones_like(field), field - form.bias
    values: np.ndarray = np.ldexp(significand.astype(np.float64), power)
    above = magnitude > form.largest_code
    values[above] = np.nan
    if form.infinity_code is not None:
        values[magnitude == form.infinity_code] = np.inf
    if form.signed:
        values = np.where(codes >> (form.bits - 1), -values, values)
    if form.specials == "zero":
        values[1 << (form.bits - 1)] = np.nan
    return values


def exact_codes(x: Array, form: Format, saturate: bool, up: Array | None = None, down: bool = False) -> Array:
    """Codes of float64 numbers. To nearest; with draws in [0, 1) `up` at random; with `down` toward zero."""
    size = np.abs(x)
    finite = np.isfinite(size)
    lowest = 1 - form.bias if form.subnormals else -form.bias
    exponent: Any = np.frexp(np.where(finite & (size > 0), size, form.smallest))[1] - 1
    power = np.maximum(exponent, lowest).astype(np.int64)
    steps = np.ldexp(np.where(finite, size, 0.0), form.mantissa - power)
    whole = np.floor(steps)
    rest = steps - whole
    code = whole.astype(np.int64) + ((power - lowest) << form.mantissa)
    if not form.subnormals:  # the leading bit is no part of the code, and there is no zero
        code = np.maximum(code - 1, 0)
        rest = np.where(steps < 1, 0.0, rest)
    if up is not None:
        code += up < rest
    elif not down:
        code += (rest > 0.5) | ((rest == 0.5) & ((code & 1 == 1) | (not form.subnormals)))
    largest = form.largest_code
    specials = [c for c in (form.infinity_code, form.nan_code) if c is not None]
    beyond = specials[0] if specials and not saturate else largest
    too_large = (code > largest) | ~finite
    code = np.where(too_large, np.where(finite & down, largest, beyond), code)
    if not form.signed:
        return np.where(x > 0, code, specials[-1])
    sign = np.signbit(x).astype(np.int64) << (form.bits - 1)
    if form.specials == "zero":  # minus zero and NaN are one code, without a sign
        sign = np.where((code > 0) & (code <= largest), sign, 0)
        return np.where(np.isnan(x), specials[-1], code | sign)
    return np.where(np.isnan(x), specials[-1] | sign if specials else 1 << (form.bits - 1), code | sign)


# ---------------------------------------------------------------- the same, fast


@cache
def _values(form: Format) -> Array:
    """The value of every code, float32."""
    values = _exact_values(form).astype(np.float32)
    values.flags.writeable = False
    return values


@cache
def _table(form: Format, saturate: bool) -> Array:
    """The code of every upper half of a float32 whose last bit says whether there is more below it."""
    halves = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        numbers = halves.view(np.float32).astype(np.float64)
    return exact_codes(numbers, form, saturate).astype(code_dtype(form))


def _nearest(part: Array, form: Format, saturate: bool, to: Array) -> None:
    """Codes of a piece of float32 numbers, to nearest, into `to`."""
    if form.mantissa <= TABLE_MANTISSA:
        bits = part.view(np.uint32)
        index = bits >> np.uint32(16)
        index |= (bits & np.uint32(0xFFFF)) != 0
        np.take(_table(form, saturate), index, out=to, mode="clip")
    elif form.name == "FP16" and not saturate:
        with np.errstate(over="ignore"):
            to[:] = part.astype(np.float16).view(np.uint16)
    elif form.exponent == 8 and not saturate:
        _cut_float32(form)(part.view(np.uint32), out=to)
    else:
        to[:] = exact_codes(part.astype(np.float64), form, saturate)


@cache
def _cut_float32(form: Format) -> Callable[..., Array]:
    """BF16 and TF32 are float32 with a shorter mantissa: a ufunc from float32 bits to codes, compiled by
    numba.

    Rounds by adding just under half of what is cut off, and one more where the last bit kept is 1.
    """
    from numba import vectorize

    cut, sign, nan = np.uint32(32 - form.bits), np.uint32(form.bits - 1), np.uint32(form.nan_code or 0)
    half, one, infinity = np.uint32((1 << (int(cut) - 1)) - 1), np.uint32(1), np.uint32(0x7F800000)

    def code_of(bits):  # type: ignore[no-untyped-def]
        if (bits & np.uint32(0x7FFFFFFF)) > infinity:
            return ((bits >> np.uint32(31)) << sign) | nan
        return (bits + half + ((bits >> cut) & one)) >> cut

    rounded: Callable[..., Array] = vectorize([f"{np.dtype(code_dtype(form)).name}(uint32)"])(code_of)
    return rounded


@cache
def _widened(form: Format) -> Callable[..., Array]:
    """Formats with the exponent of float32: a ufunc from codes to float32 bits, compiled by numba."""
    from numba import vectorize

    signature = [f"uint32({np.dtype(code_dtype(form)).name})"]
    cut = np.uint32(32 - form.bits)
    smallest, top, nan = np.uint32(0x00400000), np.uint32(255), np.uint32(0x7FC00000)

    def longer(code):  # type: ignore[no-untyped-def]
        return np.uint32(code) << cut

    def of_exponent(code):  # type: ignore[no-untyped-def]
        wide = np.uint32(code)
        return smallest if wide == 0 else nan if wide == top else wide << np.uint32(23)

    widened: Callable[..., Array] = vectorize(signature)(longer if form.signed else of_exponent)
    return widened
