"""Matrix descriptors of wgmma: against single elements, against a copy of a tile, and against Triton."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.simulator.simt.matrix_descriptors import MatrixDescriptor, decode, element_addresses, encode
from gpulab.simulator.simt.swizzles import SPANS

from .layouts import canonical_one, compiled_by_triton, swizzled_bit_by_bit

BYTES = st.integers(0, 2**14 - 1).map(lambda units: units * 16)
DESCRIPTORS = st.builds(
    MatrixDescriptor,
    start=BYTES,
    leading=BYTES,
    stride=BYTES,
    base=st.integers(0, 7),
    span=st.sampled_from(SPANS),
)


@given(DESCRIPTORS)
def test_a_descriptor_is_read_as_it_was_written(descriptor):
    word = encode(descriptor)
    assert decode(word) == descriptor
    signed = int(np.uint64(word).astype(np.int64))
    assert decode(signed) == descriptor


@given(DESCRIPTORS)
def test_fields_stand_at_the_bits_of_the_manual(descriptor):
    text = f"{encode(descriptor):064b}"[::-1]
    bits = {
        (0, 13): descriptor.start >> 4,
        (16, 29): descriptor.leading >> 4,
        (32, 45): descriptor.stride >> 4,
        (49, 51): descriptor.base,
        (62, 63): {16: 0, 128: 1, 64: 2, 32: 3}[descriptor.span],
    }
    named = set()
    for (first, last), value in bits.items():
        assert int(text[first : last + 1][::-1], 2) == value
        named |= set(range(first, last + 1))
    assert all(text[bit] == "0" for bit in range(64) if bit not in named)


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"start": 8}, "start address of a matrix descriptor must be a multiple of 16, but is 8"),
        (
            {"stride": 2**18},
            "stride byte offset of a matrix descriptor must be .*less than 262,144, .*262,144",
        ),
        ({"leading": -16}, "leading byte offset of a matrix descriptor must be at least 0 .*but is -16"),
        ({"base": 8}, "base offset of a matrix descriptor must be 0 to 7, but is 8"),
        ({"span": 96}, "swizzles of 32, 64 and 128 bytes and none .*96"),
    ],
)
def test_a_field_that_does_not_fit_is_refused_with_the_rule_and_the_value(fields, message):
    with pytest.raises(ValueError, match=message):
        encode(MatrixDescriptor(**{"start": 0, "leading": 0, "stride": 0} | fields))


@given(DESCRIPTORS, st.sampled_from([(1, True), (2, True), (4, True), (2, False)]), st.data())
def test_every_element_lies_where_the_manual_puts_it(descriptor, form, data):
    itemsize, k_major = form
    k = 32 // itemsize
    addresses = element_addresses(descriptor, 64, k, itemsize, k_major)
    assert addresses.shape == (64, k)
    row, column = data.draw(st.integers(0, 63)), data.draw(st.integers(0, k - 1))
    plain = descriptor.start + canonical_one(
        row, column, itemsize, descriptor.span, k_major, descriptor.leading, descriptor.stride
    )
    moved = 1024 - descriptor.base * 128  # the pattern begins at the base offset
    assert addresses[row, column] == swizzled_bit_by_bit(plain + moved, descriptor.span) - moved


def test_several_start_addresses_give_as_many_operands():
    descriptor = MatrixDescriptor(0, 0, 1024, span=128)
    starts = np.array([[0, 32], [8192, 8224]])
    found = element_addresses(descriptor, 64, 16, 2, start=starts)
    assert found.shape == (2, 2, 64, 16)
    for place in np.ndindex(starts.shape):
        one = element_addresses(MatrixDescriptor(int(starts[place]), 0, 1024, span=128), 64, 16, 2)
        assert np.array_equal(found[place], one)


@pytest.mark.parametrize("span", [32, 64, 128])
def test_steps_along_k_walk_through_a_swizzled_tile(span):
    """A tile as wide as the swizzle, each row of it copied to the next `span` bytes: moving the start address
    by 32 bytes leads to the next 16 columns."""
    columns = span // 2
    tile = np.arange(64 * columns, dtype=np.uint16).reshape(64, columns)
    memory = np.zeros(64 * columns, np.uint16)
    for row in range(64):
        for column in range(columns):
            memory[swizzled_bit_by_bit(row * span + column * 2, span) // 2] = tile[row, column]
    for step in range(columns // 16):
        descriptor = MatrixDescriptor(step * 32, 0, 8 * span, span=span)
        found = memory[element_addresses(descriptor, 64, 16, 2) // 2]
        assert np.array_equal(found, tile[:, 16 * step : 16 * step + 16])


@pytest.mark.parametrize(
    "itemsize, k_major, k, span, message",
    [
        (1, False, 32, 128, "only operands with elements of 2 bytes .*elements of 1 byte"),
        (4, False, 8, 128, "only operands with elements of 2 bytes .*elements of 4 bytes"),
        (2, True, 32, 32, "must fit the swizzle of 32 bytes, but 32 elements of 2 bytes take 64"),
    ],
)
def test_an_operand_that_cannot_be_is_refused(itemsize, k_major, k, span, message):
    with pytest.raises(ValueError, match=message):
        element_addresses(MatrixDescriptor(0, 16, 16, span=span), 64, k, itemsize, k_major)


# ---- what a compiler writes -------------------------------------------------------------------------------


def added(ptx: str) -> set[int]:
    """The constants that the program adds to a number or merges into it."""
    return {int(n) for n in re.findall(r"\b(?:or|add)\.[bs](?:32|64)\s+%\w+, %\w+, (\d+);", ptx)}


def test_triton_describes_k_major_tiles_in_the_same_bits():
    """Rows of 64 float16 in a swizzle of 128 bytes; each step along k moves the start by 32 bytes."""
    constants = added(compiled_by_triton(transposed=True))
    assert encode(MatrixDescriptor(0, 0, 1024, span=128)) in constants
    assert {encode(MatrixDescriptor(32 * step, 0, 0)) for step in (1, 2, 3)} <= constants


def test_triton_describes_mn_major_tiles_in_the_same_bits():
    """64 rows of k with 128 columns of float16: two spans of 64 columns, 64 × 128 bytes apart; each step
    along k moves the start by 16 rows of 128 bytes. The compiler keeps the two halves of 32 bits apart."""
    constants = added(compiled_by_triton(transposed=False))
    assert encode(MatrixDescriptor(0, 0, 1024, span=128)) in constants
    assert {encode(MatrixDescriptor(2048 * step, 8192, 0)) for step in range(4)} <= constants
