"""Block formats, packing and the Hadamard transform."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.subjects import numerics

BLOCKS = list(numerics.BLOCK_FORMATS)


def test_mxfp4_by_hand():
    blocks = numerics.encode_blocks([3.7, -0.2, 0.9, 1.6], "MXFP4")
    # largest 3.7: 2^(floor(log2 3.7) − 2) = 0.5; 3.7/0.5 = 7.4 saturates at 6
    assert blocks.scales.tolist() == [126]
    assert numerics.decode(blocks.codes, "E2M1")[0, :4].tolist() == [6, -0.5, 2, 3]
    assert blocks.decode().tolist() == [3, -0.25, 1, 1.5]


def test_nvfp4_by_hand():
    numbers = np.zeros((1, 32), np.float32)
    numbers[0, 0], numbers[0, 16], numbers[0, 17] = 2688, 6, 1
    blocks = numerics.encode_blocks(numbers, "NVFP4")
    assert blocks.tensor_scale == 1.0  # 2688 / (6 · 448)
    assert numerics.decode(blocks.scales, "E4M3").tolist() == [[448, 1]]
    assert (blocks.decode() == numbers).all()


@pytest.mark.parametrize(
    ("name", "bits"), [("MXFP8", 8.25), ("MXFP6", 6.25), ("MXFP4", 4.25), ("NVFP4", 4.5)]
)
def test_storage_is_the_elements_and_their_share_of_the_scale(name, bits):
    assert numerics.BLOCK_FORMATS[name].bits_per_element == bits
    blocks = numerics.encode_blocks(np.ones((64, 128), np.float32), name)
    assert blocks.nbytes == 64 * 128 * bits / 8 + 4 * (name == "NVFP4")


@pytest.mark.parametrize("name", BLOCKS)
@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=70))
def test_every_element_is_within_half_a_step_of_its_block(name, values):
    numbers = np.array(values, np.float32)
    form = numerics.BLOCK_FORMATS[name]
    blocks = numerics.encode_blocks(numbers, name)
    got = blocks.decode()
    assert got.shape == numbers.shape and np.isfinite(got).all()
    scales = numerics.decode(blocks.scales, form.scale).astype(np.float64) * blocks.tensor_scale
    scale = np.repeat(scales, form.size)[: numbers.size]
    # the widest step lies below the largest element; MX scales leave up to twice that above it, which saturates
    top = form.element.largest
    step = top - numerics.neighbours(np.nextafter(np.float32(top), np.float32(0)), form.element)[0]
    off = max(step, 2.0 ** np.ceil(np.log2(top)) - top)
    assert (np.abs(got - numbers) <= scale * off + np.where(scale == 0, 1e-2, 0) + 1e-30).all()


@pytest.mark.parametrize("name", BLOCKS)
def test_encoding_what_was_decoded_changes_nothing(name):
    numbers = np.random.default_rng(2).standard_normal((5, 96)).astype(np.float32)
    once = numerics.encode_blocks(numbers, name).decode()
    if name != "NVFP4":  # its scales depend on the largest element, which moved
        assert (numerics.encode_blocks(once, name).decode() == once).all()
    assert np.abs(once - numbers).max() < 0.5


@pytest.mark.parametrize("name", BLOCKS)
def test_zeros_stay_zeros_and_a_last_block_may_be_short(name):
    assert (numerics.encode_blocks(np.zeros((2, 33), np.float32), name).decode() == np.zeros((2, 33))).all()


def test_infinity_and_unknown_names_are_refused():
    with pytest.raises(ValueError, match="no infinity and no NaN"):
        numerics.encode_blocks([1.0, np.inf], "MXFP4")
    with pytest.raises(numerics.UnknownFormat, match="MXFP8"):
        numerics.encode_blocks([1.0], "MXFP3")


@given(st.integers(1, 8), st.lists(st.integers(0, 255), max_size=40))
def test_what_is_packed_is_unpacked(bits, values):
    codes = (np.array(values, np.uint8) & ((1 << bits) - 1)).astype(np.uint8)
    packed = numerics.pack(codes, bits)
    assert packed.nbytes == -(-len(values) * bits // 8)
    assert (numerics.unpack(packed, bits, len(values)) == codes).all()


def test_packing_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="more than 4 bits"):
        numerics.pack([16], 4)
    with pytest.raises(ValueError, match="1 to 8 bits"):
        numerics.pack([1], 9)


@given(st.integers(0, 8), st.integers(0, 2**32 - 1))
def test_the_hadamard_transform_keeps_lengths_and_is_its_own_inverse(power, seed):
    numbers = np.random.default_rng(seed)
    x = numbers.standard_normal((3, 1 << power))
    signs = numbers.choice([-1.0, 1.0], 1 << power)
    y = numerics.hadamard(x, signs)
    assert np.allclose(np.linalg.norm(y, axis=-1), np.linalg.norm(x, axis=-1))
    assert np.allclose(numerics.hadamard(y) * signs, x)


def test_the_hadamard_transform_is_the_matrix_and_spreads_an_outlier():
    outlier = np.eye(8)[3]
    assert np.allclose(np.abs(numerics.hadamard(outlier)), 8**-0.5)
    rows = np.array([numerics.hadamard(row) for row in np.eye(4)])
    assert np.allclose(2 * rows, [[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])
    with pytest.raises(ValueError, match="power of two, not 12"):
        numerics.hadamard(np.ones(12))
