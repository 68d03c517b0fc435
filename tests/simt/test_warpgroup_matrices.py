"""wgmma's shapes, fragments and sums against single elements and exact fractions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.simulator.simt.matrix import ELEMENTS
from gpulab.simulator.simt.sparse import kept_columns, spread
from gpulab.simulator.simt.warpgroup_matrices import (
    RESULTS,
    check,
    columns_of_a,
    multiply_accumulate,
    operand_places,
    result_places,
)

from .warpgroup_model import one_sum, place_of_code

FLOATS = {"f16": (np.uint16, -14), "bf16": (np.uint16, -126), "tf32": (np.uint32, -126)}
FLOATS |= {"e4m3": (np.uint8, -6), "e5m2": (np.uint8, -14)}
PAIRS = [(a, b) for together in RESULTS for a in together for b in together]

# ---- shapes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("a, b", PAIRS)
def test_every_shape_of_the_manual_is_accepted(a, b):
    k = {"f16": 16, "bf16": 16, "tf32": 8}.get(a, 32)
    columns = [8, 16, 24, *range(32, 257, 16)] if a in ("s8", "u8") else range(8, 257, 8)
    for d in {"f16": ("f16", "f32"), "bf16": ("f32",), "tf32": ("f32",), "s8": ("s32",), "u8": ("s32",)}.get(
        a, ("f16", "f32")
    ):
        for n in columns:
            check(64, n, k, d, a, b)
            check(64, n, 2 * k, d, a, b, sparse=True)


@pytest.mark.parametrize(
    "asked, message",
    [
        ((64, 128, 16, "f32", "f16", "bf16"), "does not multiply f16 by bf16"),
        ((64, 128, 16, "f16", "bf16", "bf16"), "adds products of bf16 and bf16 in f32, not in f16"),
        ((64, 12, 16, "f32", "f16", "f16"), "has a multiple of 8 up to 256 columns, not 12"),
        ((64, 264, 16, "f32", "f16", "f16"), "up to 256 columns, not 264"),
        ((64, 40, 32, "s32", "s8", "u8"), "8, 16, 24, or a multiple of 16 from 32 up to 256 columns, not 40"),
        ((64, 64, 32, "f32", "f16", "f16"), "has the shape m64n64k16, not m64n64k32"),
        ((128, 64, 16, "f32", "f16", "f16"), "has the shape m64n64k16, not m128n64k16"),
    ],
)
def test_a_shape_that_is_not_there_is_refused_with_the_rule_and_the_value(asked, message):
    with pytest.raises(ValueError, match=message):
        check(*asked)


# ---- who holds what ------------------------------------------------------------------------------


@given(st.integers(1, 32).map(lambda x: 8 * x), st.integers(0, 127), st.data())
def test_results_lie_as_the_manual_draws_them(n, thread, data):
    i = data.draw(st.integers(0, n // 2 - 1))
    row = 16 * (thread // 32) + (thread % 32) // 4 + (8 if i % 4 in (2, 3) else 0)
    column = 8 * (i // 4) + 2 * (thread % 4) + i % 2
    rows, columns = result_places(n)
    assert (rows[thread, i], columns[thread, i]) == (row, column)


@given(st.sampled_from([8, 16, 32]), st.integers(0, 127), st.data())
def test_operands_in_registers_lie_as_the_manual_draws_them(bits, thread, data):
    i = data.draw(st.integers(0, 128 // bits - 1))
    per = 32 // bits
    lower, right = {0: (0, 0), 1: (8, 0), 2: (0, 16), 3: (8, 16)}[i // per]  # rows, and bytes to the right
    row = 16 * (thread // 32) + thread % 32 // 4 + lower
    column = (thread % 4) * per + i % per + right * 8 // bits
    rows, columns = operand_places(bits)
    assert (rows[thread, i], columns[thread, i]) == (row, column)


@pytest.mark.parametrize("places, width", [(result_places(n), n) for n in (8, 24, 256)])
def test_every_element_of_a_result_has_one_holder(places, width):
    rows, columns = places
    assert np.array_equal(np.sort((rows * width + columns).ravel()), np.arange(64 * width))


@pytest.mark.parametrize("type_", ["f16", "tf32", "s8"])
def test_every_element_of_an_operand_has_one_holder(type_):
    rows, columns = operand_places(ELEMENTS[type_].bits)
    width = columns_of_a(type_)
    assert np.array_equal(np.sort((rows * width + columns).ravel()), np.arange(64 * width))


# ---- sparse A ------------------------------------------------------------------------------------


@given(st.sampled_from(["f16", "bf16", "tf32", "e4m3", "s8"]), st.integers(0, 1), st.integers(0, 2**32 - 1))
def test_a_sparse_operand_is_spread_as_its_metadata_says(type_, selector, seed):
    generator = np.random.default_rng(seed)
    selector = selector if ELEMENTS[type_].bits > 8 else 0
    stored, group = columns_of_a(type_), 2 if type_ == "tf32" else 4
    metadata = np.zeros(128, np.uint32)
    full, packed = np.zeros((64, 2 * stored)), np.zeros((64, stored))
    for row in range(64):
        for chunk in range(0, 2 * stored, group):
            kept = np.sort(generator.choice(group, group // 2, replace=False))
            values = generator.integers(1, 100, len(kept))
            full[row, chunk + kept] = values
            packed[row, chunk // 2 : chunk // 2 + len(kept)] = values
            code = (0b0100, 0b1110)[kept[0]] if group == 2 else int(kept[0] | kept[1] << 2)
            thread, bit = place_of_code(type_, row, chunk, selector)
            metadata[thread] |= np.uint32(code << bit)
    columns = kept_columns(metadata, type_, 64, stored, selector)
    assert np.array_equal(spread(packed, columns), full)
    several = kept_columns(np.stack([metadata, metadata]).view(np.int32), type_, 64, stored, selector)
    assert np.array_equal(several, np.stack([columns, columns]))


# ---- how it adds ---------------------------------------------------------------------------------


@st.composite
def products(draw):
    """(types, storage of A, B and C) of a few rows and columns, of any finite magnitude."""
    a_type, b_type = draw(st.sampled_from([pair for pair in PAIRS if pair[0] in FLOATS]))
    d_type = draw(st.sampled_from(next(d for together, d in RESULTS.items() if a_type in together)))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k, wild = columns_of_a(a_type), draw(st.booleans())
    operands = []
    for type_, rows in ((a_type, 3), (b_type, 4)):
        storage, _ = FLOATS[type_]
        words = generator.integers(0, 2 ** (8 * storage(0).itemsize), (rows, k), dtype=storage)
        if not wild:  # exponents near that of 1
            plain = generator.standard_normal((rows, k)).astype("f4").view("u4")
            shift = {"bf16": 16, "tf32": 0}.get(type_)
            words = words if shift is None else (plain >> shift).astype(storage)
        with np.errstate(invalid="ignore"):
            values = ELEMENTS[type_].decode(np.ascontiguousarray(words))
        operands.append(np.where(np.isfinite(values) & (np.abs(values) < 2.0**60), values, 0.0))
    c = (generator.standard_normal((3, 4)) * 2.0 ** generator.integers(-30, 10, (3, 4))).astype(
        "f2" if d_type == "f16" else "f4"
    )
    return a_type, b_type, d_type, *operands, c.astype("f8")


@given(products())
def test_sums_are_cut_and_rounded_as_on_the_hardware(drawn):
    a_type, b_type, d_type, a, b, c = drawn
    smallest = FLOATS[a_type][1], FLOATS[b_type][1], -14 if d_type == "f16" else -126
    with np.errstate(over="ignore"):
        found = multiply_accumulate(a, b, c, a_type, b_type, d_type)
        for row, column in np.ndindex(3, 4):
            expected = one_sum(
                [float(x) for x in a[row]],
                [float(x) for x in b[column]],
                float(c[row, column]),
                smallest,
                d_type,
                a_type in ("e4m3", "e5m2"),
            )
            assert float(found[row, column]) == expected
    assert found.dtype == (np.float16 if d_type == "f16" else np.float32)


def test_fp8_forgets_what_is_smaller_than_a_part_in_two_to_the_thirteen():
    """Why long FP8 sums are moved to float32 registers every 128 elements of k."""
    a, b = np.zeros((1, 32)), np.ones((1, 32))
    a[0, 0] = 2.0**-2
    lost = multiply_accumulate(a, b, np.array([[2.0**12]]), "e4m3", "e4m3", "f32")
    assert lost == 2.0**12
    kept = multiply_accumulate(a[:, :16], b[:, :16], np.array([[2.0**12]]), "f16", "f16", "f32")
    assert kept == 2.0**12 + 2.0**-2


@pytest.mark.parametrize(
    "a, c, expected", [(np.inf, 1.0, np.inf), (np.nan, 1.0, np.nan), (1.0, -np.inf, -np.inf)]
)
@pytest.mark.parametrize("type_", ["f16", "e5m2"])
def test_infinities_and_nan_spread_to_their_own_sums_only(a, c, expected, type_):
    left, right = np.ones((2, columns_of_a(type_))), np.ones((1, columns_of_a(type_)))
    left[0, 3] = a
    found = multiply_accumulate(left, right, np.array([[c], [1.0]]), type_, type_, "f32")
    assert np.array_equal(found[0], [np.float32(expected)], equal_nan=True)
    assert found[1] == columns_of_a(type_) + 1
    if np.isnan(expected):
        assert found[:1].view(np.uint32) == 0x7FFFFFFF


@given(st.sampled_from([("s8", "s8"), ("s8", "u8"), ("u8", "u8")]), st.integers(0, 2**32 - 1))
def test_integers_multiply_exactly_and_wrap(types, seed):
    generator = np.random.default_rng(seed)
    bounds = {"s8": (-128, 128), "u8": (0, 256)}
    a, b = (generator.integers(*bounds[t], (4, 32), "i8") for t in types)
    c = generator.integers(-(2**31), 2**31, (4, 4), "i8")
    found = multiply_accumulate(a, b, c, *types, "s32")
    for row, column in np.ndindex(4, 4):
        exact = sum(int(x) * int(y) for x, y in zip(a[row], b[column], strict=True)) + int(c[row, column])
        assert int(found[row, column]) == (exact + 2**31) % 2**32 - 2**31


def test_sums_of_several_warpgroups_are_made_at_once():
    generator = np.random.default_rng(0)
    a, b = generator.integers(-8, 9, (2, 3, 64, 16)) / 4, generator.integers(-8, 9, (2, 3, 24, 16)) / 4
    c = generator.integers(-8, 9, (2, 3, 64, 24)) / 2
    found = multiply_accumulate(a, b, c, "f16", "f16", "f32")
    assert np.array_equal(found, np.einsum("...mk,...nk->...mn", a, b) + c)
