"""Codecs of number formats: exact by definition, as ml_dtypes and torch have them, in every rounding."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpulab.subjects import numerics

THEIRS = {
    "BF16": ml_dtypes.bfloat16,
    "FP16": np.float16,
    "E4M3": ml_dtypes.float8_e4m3fn,
    "E5M2": ml_dtypes.float8_e5m2,
    "E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "E3M2": ml_dtypes.float6_e3m2fn,
    "E2M3": ml_dtypes.float6_e2m3fn,
    "E2M1": ml_dtypes.float4_e2m1fn,
    "E8M0": ml_dtypes.float8_e8m0fnu,
}
TORCHS = {
    "BF16": torch.bfloat16,
    "FP16": torch.float16,
    "E5M2": torch.float8_e5m2,
    "E4M3FNUZ": torch.float8_e4m3fnuz,
    "E5M2FNUZ": torch.float8_e5m2fnuz,
}
SMALL = [name for name, form in numerics.FORMATS.items() if form.bits <= 16]


def awkward() -> np.ndarray:
    """All upper halves of a float32, alone, with a little more and a little less, and a million random bit patterns."""
    halves = np.arange(65536, dtype=np.uint32) << np.uint32(16)
    some = np.random.default_rng(7).integers(0, 2**32, 10**6, dtype=np.uint32)
    bits = np.concatenate([halves, halves + np.uint32(1), halves - np.uint32(1), some])
    return bits.view(np.float32)


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a == b) | (np.isnan(a) & np.isnan(b))


@pytest.mark.parametrize("name", THEIRS)
def test_every_code_means_what_ml_dtypes_says(name):
    codes = np.arange(1 << numerics.find(name).bits).astype(numerics.encode(0.0, name).dtype)
    assert same(numerics.decode(codes, name), codes.view(THEIRS[name]).astype(np.float32)).all()


@pytest.mark.parametrize("name", THEIRS)
def test_numbers_are_rounded_as_ml_dtypes_rounds_them(name):
    numbers = awkward()
    form = numerics.find(name)
    if form.nan_code is None:
        numbers = numbers[~np.isnan(numbers)]  # ml_dtypes' choice among the numbers depends on the NaN's bits
    if name == "E8M0":
        numbers = numbers[~((numbers > 0) & (numbers < 2.0**-126))]  # ml_dtypes rounds these all up
    if name == "FP16":
        numbers = numbers[~np.isnan(numbers)]  # NumPy keeps bits of the NaN
    with np.errstate(all="ignore"):
        theirs = numbers.astype(THEIRS[name])
    codes = numerics.encode(numbers, name)
    assert (codes == theirs.view(codes.dtype)).all()


@pytest.mark.parametrize("name", TORCHS)
def test_numbers_are_rounded_as_torch_rounds_them(name):
    numbers = awkward()
    theirs = torch.from_numpy(numbers).to(TORCHS[name]).to(torch.float32).numpy()
    assert same(numerics.quantize(numbers, name), theirs).all()


@pytest.mark.parametrize("name", SMALL)
def test_a_number_of_the_format_is_its_own_rounding_in_every_way(name):
    numbers = numerics.representable(name)
    for rounding in ("nearest", "toward zero", "stochastic"):
        generator = np.random.default_rng(3)
        assert (numerics.quantize(numbers, name, rounding, generator=generator) == numbers).all()


@pytest.mark.parametrize("name", SMALL)
@given(x=st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_nearest_is_nearest_and_ties_go_to_the_even_code(name, x):
    form = numerics.find(name)
    if abs(x) > form.largest or (not form.signed and x < form.smallest):
        return
    code = int(numerics.encode(x, name))
    got = Fraction(float(numerics.decode(np.uint16(code), name)))
    low, high = numerics.neighbours(x, name)
    assert low <= x <= high
    below, above = abs(Fraction(x) - Fraction(low)), abs(Fraction(high) - Fraction(x))
    assert got == (Fraction(low) if below < above else Fraction(high)) or below == above
    if below == above and low != high:
        assert code % 2 == 0 if form.mantissa else got == Fraction(high)


@pytest.mark.parametrize("name", ["FP16", "TF32", "BF16", "E4M3", "E5M2", "E2M3", "E2M1"])
@given(x=st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_toward_zero_never_gets_larger(name, x):
    got = float(numerics.quantize(x, name, "toward zero"))
    assert abs(got) <= abs(x) and math.copysign(1, got) == math.copysign(1, x)
    assert got in (numerics.neighbours(x, name) if abs(x) <= numerics.find(name).largest else (got,))


def test_stochastic_rounding_is_right_on_average_where_nearest_is_not():
    numbers = np.full(200_000, 1.3, np.float32)
    up = numerics.quantize(numbers, "E2M1", "stochastic", generator=np.random.default_rng(5))
    assert set(np.unique(up)) == {1.0, 1.5}
    assert abs(up.mean() - 1.3) < 5 * 0.25 / math.sqrt(200_000)
    assert numerics.quantize(numbers, "E2M1").mean() == 1.5


@pytest.mark.parametrize(
    ("name", "largest", "smallest_normal", "smallest"),
    [
        ("FP32", 3.4028234663852886e38, 2.0**-126, 2.0**-149),
        ("TF32", 3.4011621342146535e38, 2.0**-126, 2.0**-136),
        ("BF16", 3.3895313892515355e38, 2.0**-126, 2.0**-133),
        ("FP16", 65504, 2.0**-14, 2.0**-24),
        ("E5M2", 57344, 2.0**-14, 2.0**-16),
        ("E4M3", 448, 2.0**-6, 2.0**-9),
        ("E4M3FNUZ", 240, 2.0**-7, 2.0**-10),
        ("E5M2FNUZ", 57344, 2.0**-15, 2.0**-17),
        ("E3M2", 28, 0.25, 0.0625),
        ("E2M3", 7.5, 1, 0.125),
        ("E2M1", 6, 1, 0.5),
        ("E8M0", 2.0**127, 2.0**-127, 2.0**-127),
    ],
)
def test_ranges_are_those_that_the_standards_state(name, largest, smallest_normal, smallest):
    form = numerics.find(name)
    assert (form.largest, form.smallest_normal, form.smallest) == (largest, smallest_normal, smallest)
    if form.bits <= 16:
        positive = numerics.representable(name)
        assert positive.max() == largest and positive[positive > 0].min() == smallest


@pytest.mark.parametrize(
    ("name", "at_infinity", "saturated"),
    [("FP16", np.inf, 65504), ("E5M2", np.inf, 57344), ("E4M3", np.nan, 448), ("E4M3FNUZ", np.nan, 240)],
)
def test_what_is_too_large_is_infinity_or_nan_or_the_largest(name, at_infinity, saturated):
    for large in (1e30, np.inf):
        assert same(numerics.quantize([large, -large], name), np.array([at_infinity, -at_infinity])).all()
        assert (numerics.quantize([large, -large], name, saturate=True) == [saturated, -saturated]).all()


def test_formats_without_infinity_and_nan_saturate():
    assert (numerics.quantize([100.0, -np.inf], "E2M1") == [6, -6]).all()


def test_fp64_and_fp32_keep_every_bit():
    numbers = np.array([1 / 3, -0.0, 5e-324, np.inf])
    assert (numerics.decode(numerics.encode(numbers, "FP64"), "FP64") == numbers).all()
    assert numerics.encode(1.0, "fp32") == 0x3F800000


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (7,), (2, 3, 5), (70_000,)])
def test_any_shape_keeps_its_shape(shape):
    numbers = np.ones(shape, np.float32)
    codes = numerics.encode(numbers, "E4M3")
    assert codes.shape == shape and numerics.decode(codes, "E4M3").shape == shape
    assert (numerics.decode(codes, "E4M3") == 1).all()


def test_arrays_that_do_not_lie_in_a_row_are_taken_too():
    numbers = np.arange(12, dtype=np.float32).reshape(3, 4).T[::2]
    assert (numerics.quantize(numbers, "BF16") == numbers).all()


def test_mistakes_get_messages():
    with pytest.raises(numerics.UnknownFormat, match="E4M3"):
        numerics.encode(1.0, "E4M4")
    with pytest.raises(ValueError, match="'nearest', 'toward zero' or 'stochastic'"):
        numerics.encode(1.0, "FP16", "up")
    with pytest.raises(ValueError, match="generator"):
        numerics.encode(1.0, "FP16", "stochastic")
    with pytest.raises(ValueError, match="E2M1 has 4 bits: 16 is no code"):
        numerics.decode([3, 16], "E2M1")
    with pytest.raises(ValueError, match="too many to list"):
        numerics.representable("FP32")
