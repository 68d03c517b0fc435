"""Compiled loads and stores against NumPy's, bit for bit, for arrays of every shape that an access has."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.simulator.simt import moves

from .drawing import seeds

BLOCKS, LANES, ELEMENTS = 3, 64, 40  # of a chunk; elements that each of its windows has
GUARD = 64  # bytes before the first element


def drawn(rng, *, width, count, row, column):
    """A window, addresses in it, a mask or None, and the shape of the access."""
    elements = ELEMENTS * max(BLOCKS * bool(row), 1) * max(LANES * bool(column), 1)
    view = rng.integers(0, 256, elements * width, np.uint8).view(f"u{width}")
    steps = (LANES if column else 1) * ELEMENTS * bool(row), ELEMENTS * bool(column)
    window = moves.Window(view, GUARD, ELEMENTS * width, *steps)
    rows, columns = (int(rng.choice([1, n])) for n in (BLOCKS, LANES))
    places = rng.integers(0, ELEMENTS // count, (rows, columns)) * count
    masks = [None, *(rng.random(shape) < 0.6 for shape in ((BLOCKS, LANES), (1, LANES), (BLOCKS, 1)))]
    lanes = masks[rng.integers(len(masks))]
    if lanes is not None:
        lanes.flat[rng.integers(lanes.size)] = True
    address = places * width + GUARD
    every = [address] if lanes is None else [address, lanes]
    shape = np.broadcast_shapes(*(a.shape for a in every), (BLOCKS if row else 1, LANES if column else 1))
    return window, address, lanes, shape


def places_of(window, address, lanes, shape):
    """Where NumPy would look: the element of each lane, those outside the group at the first lane's address."""
    if lanes is not None:
        lanes, address = np.broadcast_arrays(lanes, address)
        address = np.where(lanes, address, address.flat[lanes.argmax()])
    own = np.arange(shape[0])[:, None] * window.row + np.arange(shape[1]) * window.column
    return np.broadcast_to((address - window.origin) // window.view.itemsize, shape) + own


widths = pytest.mark.parametrize("width", [1, 2, 4, 8])
windows = pytest.mark.parametrize("row, column", [(False, False), (True, False), (True, True)])


@widths
@windows
@given(count=st.sampled_from([1, 2, 4]), seed=seeds)
def test_a_load_gets_what_numpy_takes(width, row, column, count, seed):
    window, address, lanes, shape = drawn(
        np.random.default_rng(seed), width=width, count=count, row=row, column=column
    )
    assert moves.is_in_order(window, address, lanes, shape, count)
    places = places_of(window, address, lanes, shape)
    for i, value in enumerate(moves.load(window, address, lanes, shape, count)):
        assert value.dtype == window.view.dtype
        assert np.array_equal(value, window.view[places + i])


@widths
@windows
@given(count=st.sampled_from([1, 2, 4]), seed=seeds)
def test_a_store_leaves_what_numpy_leaves_and_the_last_lane_wins(width, row, column, count, seed):
    rng = np.random.default_rng(seed)
    window, address, lanes, shape = drawn(rng, width=width, count=count, row=row, column=column)
    sizes = [(int(rng.choice([1, rows])), int(rng.choice([1, columns]))) for rows, columns in [shape] * count]
    values = [rng.integers(0, 200, size).astype(window.view.dtype) for size in sizes]
    expected, places = window.view.copy(), places_of(window, address, lanes, shape)
    who = np.broadcast_to(True if lanes is None else lanes, shape)
    for i, value in enumerate(values):
        expected[(places + i)[who]] = np.broadcast_to(value, shape)[who]
    moves.store(window, address, lanes, shape, values)
    assert np.array_equal(window.view, expected)


@pytest.mark.parametrize(
    "odd, takes_part, ordered",
    [
        (4 * ELEMENTS - 8, True, True),  # the last two elements
        (4 * ELEMENTS, True, False),  # behind them
        (-8, True, False),  # before the first
        (12, True, False),  # between two places for two elements
        (-8, False, True),  # a lane that takes no part
        (12, False, True),
        (4 * ELEMENTS, False, True),
    ],
)
def test_all_lanes_of_the_group_must_reach_elements_of_the_window(odd, takes_part, ordered):
    window = moves.Window(np.zeros(ELEMENTS, np.uint32), 0, 4 * ELEMENTS)
    address = np.full((BLOCKS, LANES), 16, np.int64)
    address[1, 5] = odd
    lanes = None if takes_part else address == 16
    assert moves.is_in_order(window, address, lanes, address.shape, 2) is ordered


def test_a_group_without_lanes_and_arrays_with_gaps_are_left_to_numpy():
    window = moves.Window(np.zeros(ELEMENTS, np.uint32), 0, 4 * ELEMENTS)
    address = np.zeros((BLOCKS, LANES), np.int64)
    assert not moves.is_in_order(window, address, np.zeros((1, LANES), bool), address.shape, 1)
    assert not moves.is_in_order(window, address.T, None, address.shape, 1)


@widths
@given(kind=st.sampled_from(["one", "next", "any"]), seed=seeds)
def test_the_same_places_in_every_row_are_taken(width, kind, seed):
    rng = np.random.default_rng(seed)
    view = rng.integers(0, 256, (BLOCKS, ELEMENTS * width), np.uint8).view(f"u{width}")
    octets = rng.integers(0, ELEMENTS - 8, (LANES // 8, 1))
    places = {
        "one": octets + np.zeros(8, np.int64),
        "next": octets + np.arange(8),
        "any": rng.integers(0, ELEMENTS, (LANES // 8, 8)),
    }[kind].reshape(-1)
    assert np.array_equal(moves.load_rows(view, places), view[:, places])
