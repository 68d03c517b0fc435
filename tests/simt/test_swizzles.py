"""Swizzles and canonical layouts against the bit patterns and layout expressions of the PTX manual."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.simulator.simt.swizzles import SPANS, canonical_offsets, pattern_bytes, swizzled

from .layouts import canonical_one, swizzled_bit_by_bit


@given(st.lists(st.integers(0, 2**18 - 1), min_size=1), st.sampled_from(SPANS))
def test_a_swizzle_exchanges_address_bits_as_the_manual_draws_it(addresses, span):
    found = swizzled(np.array(addresses), span)
    assert found.tolist() == [swizzled_bit_by_bit(address, span) for address in addresses]


@given(st.sampled_from(SPANS), st.integers(0, 7))
def test_a_swizzle_only_exchanges_chunks_of_a_span_and_leads_back(span, line):
    addresses = np.arange(4096)
    there = swizzled(addresses, span, line * 128)
    assert np.array_equal(swizzled(there, span, line * 128), addresses)
    assert np.array_equal(there // span, addresses // span)
    assert np.array_equal(there % 16, addresses % 16)


@given(st.sampled_from(SPANS), st.integers(0, 7))
def test_a_pattern_that_begins_later_is_the_same_pattern_moved(span, line):
    addresses, start = np.arange(2048), line * 128
    assert np.array_equal(swizzled(addresses + start, span, start), swizzled(addresses, span) + start)


@pytest.mark.parametrize("span", SPANS)
def test_a_pattern_repeats_after_eight_rows_of_its_span(span):
    period = pattern_bytes(span)
    moves = swizzled(np.arange(4 * period), span) - np.arange(4 * period)
    assert np.array_equal(moves[:period], moves[period : 2 * period])
    if span > 16:
        assert not np.array_equal(moves[: period // 2], moves[period // 2 : period])


@pytest.mark.parametrize("span", [32, 64, 128])
def test_a_column_of_chunks_meets_more_banks_with_a_wider_swizzle(span):
    """Eight rows of one chunk in a tile with rows of the span's width: 128 bytes touch all 32 banks."""
    column = swizzled(np.arange(8) * span, span)
    banks = (column[:, None] // 4 + np.arange(4)) % 32
    assert np.unique(banks).size == 32


@given(
    st.sampled_from(SPANS),
    st.booleans(),
    st.sampled_from([1, 2, 4]),
    st.integers(0, 4095),
    st.integers(0, 4095),
    st.data(),
)
def test_canonical_layouts_are_those_of_the_manual(span, k_major, itemsize, leading, stride, data):
    width = 2 if span == 16 else span // 16
    mn = data.draw(st.integers(0, 255))
    k = data.draw(st.integers(0, (width if k_major else 8) * 16 // itemsize - 1))
    fields = itemsize, span, k_major, leading * 16, stride * 16
    found = canonical_offsets(np.array([mn]), np.array([k]), *fields)
    assert found.tolist() == [canonical_one(mn, k, *fields)]
