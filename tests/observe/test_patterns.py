"""The analysis of address patterns against sets, row by row: patterns that have a short cut, and any
others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from gpulab.simulator.observe import compiled_patterns, patterns
from tests.simt.drawing import seeds

ROWS = 6


def drawn(generator: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Addresses of 6 warps, multiples of `size`, and the lanes that take part (None: all)."""
    lane = np.arange(32)
    base = generator.integers(0, 40, (ROWS, 1)) * size
    if generator.integers(2):
        base[:] = base[0]
    kinds = [
        base + lane * size,
        base + lane * size * generator.integers(0, 40),
        base + generator.permutation(32) * size,
        generator.integers(0, generator.choice([2, 20, 2000]), (ROWS, 32)) * size,
    ]
    address = kinds[generator.integers(len(kinds))].astype(np.int64)
    if generator.integers(3) == 0:  # the same, whole sectors further on
        address = address[:1] + 32 * generator.integers(0, 40, (ROWS, 1))
    if generator.integers(3) == 0:
        return address, None
    lanes = generator.random((ROWS, 32)) < generator.choice([0, 0.05, 0.5, 0.95])
    garbage = generator.integers(-(2**62), 2**62, (ROWS, 32)) // size * size
    return (np.where(lanes, address, garbage) if generator.integers(2) else address), lanes


def rows(address: np.ndarray, lanes: np.ndarray | None) -> list[dict[int, int]]:
    """Address by lane, for each warp."""
    there = np.ones(address.shape, bool) if lanes is None else lanes
    return [{l: int(a[l]) for l in range(32) if on[l]} for a, on in zip(address, there, strict=True)]


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
@settings(max_examples=40)
@given(seed=seeds)
def test_sectors_are_those_of_the_bytes(size, seed):
    address, lanes = drawn(np.random.default_rng(seed), size)
    touched, ideal = patterns.sectors(address, size, lanes)
    octets = [{a + i for a in row.values() for i in range(size)} for row in rows(address, lanes)]
    assert touched.tolist() == [len({o // 32 for o in each}) for each in octets]
    assert ideal.tolist() == [-(-len(each) // 32) for each in octets]


@pytest.mark.parametrize("rows_of_lanes", [1, 2, 5])
def test_one_lane_out_of_line_is_no_unit_stride(rows_of_lanes):
    in_line = np.arange(rows_of_lanes)[:, None] * 4096 + np.arange(32) * 4
    assert patterns.is_unit_stride(in_line, 4)
    for place in np.ndindex(in_line.shape):
        address = in_line.copy()
        address[place] += 1024
        assert not patterns.is_unit_stride(address, 4), place


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
@settings(max_examples=40)
@given(seed=seeds)
def test_wavefronts_are_those_of_the_fullest_bank(size, seed):
    address, lanes = drawn(np.random.default_rng(seed), size)
    passes, ideal = patterns.wavefronts(address, size, lanes)
    together = 32 * 4 // max(size, 4)
    expected, least = [], []
    for row in rows(address, lanes):
        groups = [[a for l, a in row.items() if l // together == g] for g in range(32 // together)]
        words = [{(a + 4 * w) // 4 for a in group for w in range(max(size // 4, 1))} for group in groups]
        expected.append(
            sum(max((sum(w % 32 == b for w in each) for b in range(32)), default=0) for each in words)
        )
        least.append(sum(bool(each) for each in words))
    assert passes.tolist() == expected
    assert ideal.tolist() == least


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
@settings(max_examples=20)
@given(seed=seeds)
def test_local_words_lie_beside_those_of_the_neighbouring_lanes(size, seed):
    address, lanes = drawn(np.random.default_rng(seed), size)
    touched, ideal = patterns.local_sectors(address, size, lanes)
    words = max(size // 4, 1)
    expected = [
        {(a // 4 + w, l // 8) for l, a in row.items() for w in range(words)} for row in rows(address, lanes)
    ]
    assert touched.tolist() == [len(each) for each in expected]
    assert ideal.tolist() == [-(-len(row) * max(size, 4) // 32) for row in rows(address, lanes)]


@settings(max_examples=20)
@given(seed=seeds)
def test_constant_memory_serves_each_word_once(seed):
    address, lanes = drawn(np.random.default_rng(seed), 4)
    passes, ideal = patterns.constant_passes(address, 4, lanes)
    assert passes.tolist() == [len({a // 4 for a in row.values()}) for row in rows(address, lanes)]
    assert ideal.tolist() == [int(bool(row)) for row in rows(address, lanes)]


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("name", ["sectors", "wavefronts"])
@settings(max_examples=40)
@given(seed=seeds)
def test_what_is_compiled_counts_the_same(name, size, seed):
    address, lanes = drawn(np.random.default_rng(seed), size)
    sums = [int(each.sum()) for each in getattr(patterns, name)(address, size, lanes)]
    assert list(getattr(compiled_patterns, name)(address, size, lanes)) == sums


@given(seed=seeds)
def test_a_warp_is_split_where_some_of_its_lanes_go_and_some_stay(seed):
    rng = np.random.default_rng(seed)
    taken = rng.random((ROWS, 32)) < rng.choice([0, 0.02, 0.5, 1], (ROWS, 1))
    lanes = None if seed % 2 else rng.random((ROWS, 32)) < rng.choice([0, 0.1, 0.9], (ROWS, 1))
    ways = [set(row[slice(None) if lanes is None else lanes[i]].tolist()) for i, row in enumerate(taken)]
    assert (
        patterns.split(taken, lanes)
        == compiled_patterns.split(taken, lanes)
        == sum(len(w) == 2 for w in ways)
    )


@settings(max_examples=40)
@given(seed=seeds)
def test_each_bulk_copy_takes_the_sectors_of_its_own_elements(seed):
    rng = np.random.default_rng(seed)
    size, shape = int(rng.choice([1, 2, 4, 8, 16])), (int(rng.integers(1, 4)), int(rng.integers(1, 40)))
    address = rng.integers(0, rng.choice([20, 2000]), shape) * size
    if rng.integers(2):  # most of them alike: the same shape, whole sectors further on
        address[1:] = address[0] + 32 * rng.integers(0, 40, (shape[0] - 1, 1))
    if rng.integers(2):
        address[-1, -1] += 32 * int(rng.integers(1, 40))
    inside = rng.random(shape) < 0.7 if rng.integers(2) else None
    there = np.ones(shape, bool) if inside is None else inside
    copies = [row[on].tolist() for row, on in zip(address, there, strict=True)]
    moved = sum(size * len(copy) for copy in copies)
    touched = sum(len({a // 32 for a in copy}) for copy in copies)
    ideal = sum(-(-size * len(copy) // 32) for copy in copies)
    assert patterns.box_sectors(address, size, inside) == (moved, touched, ideal)


@pytest.mark.parametrize("copies", [1, 2, 3, 5])
def test_copies_of_one_shape_take_as_many_sectors_each(copies):
    """Each copy has 7 elements 64 bytes apart, and so a sector for each, whatever the others have."""
    address = np.arange(copies)[:, None] * 4096 + np.arange(7) * 64
    assert patterns.box_sectors(address, 8, None) == (copies * 56, copies * 7, copies * 2)
