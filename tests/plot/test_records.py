"""The geometry of a request: sectors and banks, by hand."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.plot import Coverage, Request
from gpulab.simulator.observe import patterns

LANE = np.arange(32)


@pytest.mark.parametrize(
    ("addresses", "size", "sectors", "useful"),
    [
        (4 * LANE, 4, 4, 128),  # 128 bytes side by side
        (4 * LANE + 4, 4, 5, 128),  # one word off: bytes 4 … 131 end in a fifth sector
        (8 * LANE, 4, 8, 128),  # every second word of 256 bytes
        (32 * LANE, 4, 32, 128),  # a sector each
        (384 * LANE, 4, 32, 128),  # a row of 96 float32 apart
        (0 * LANE, 4, 1, 4),  # all lanes the same word
        (4 * (31 - LANE), 4, 4, 128),  # the order of the lanes does not matter
        (LANE, 1, 1, 32),
        (2 * LANE, 2, 2, 64),
        (8 * LANE, 8, 8, 256),
        (16 * LANE, 16, 16, 512),
    ],
)
def test_sectors_are_the_distinct_32_byte_pieces(
    addresses: np.ndarray, size: int, sectors: int, useful: int
) -> None:
    request = Request(addresses, size=size)
    assert len(request.sectors) == sectors
    assert request.useful_bytes == useful


def test_lanes_that_take_no_part_touch_nothing() -> None:
    request = Request(4 * LANE, active=LANE < 8)
    assert list(request.sectors) == [0]
    assert list(request.lanes) == list(range(8))


@pytest.mark.parametrize(
    ("addresses", "size", "wavefronts"),
    [
        (4 * LANE, 4, 1),  # a bank each
        (8 * LANE, 4, 2),  # stride 2: lanes 0 and 16 share bank 0
        (4 * 33 * LANE, 4, 1),  # the padded column of a tile
        (4 * 34 * LANE, 4, 2),
        (4 * 32 * LANE, 4, 32),  # a column: all in bank 0
        (0 * LANE, 4, 1),  # one word for all: a broadcast
        (128 * (LANE % 2), 4, 2),  # two words of bank 0, 16 lanes each
        (LANE, 1, 1),  # four lanes share a word
        (8 * LANE, 8, 2),  # 16 lanes of 8 bytes at a time
        (16 * LANE, 16, 4),  # 8 lanes of 16 bytes at a time
        (0 * LANE, 8, 2),  # the groups are served one after the other even so
        (128 * LANE, 8, 32),  # 16 words of bank 0 in each group of 16 lanes
    ],
)
def test_wavefronts_are_the_words_that_the_busiest_bank_serves(
    addresses: np.ndarray, size: int, wavefronts: int
) -> None:
    assert Request(addresses, size=size, space="shared").wavefronts == wavefronts


def test_lanes_that_want_the_same_word_share_its_cell() -> None:
    cells = Request(128 * (LANE % 2), space="shared").bank_cells
    assert cells == {(0, 0): tuple(range(0, 32, 2)), (1, 0): tuple(range(1, 32, 2))}


@given(
    st.lists(st.integers(0, 4095), min_size=32, max_size=32),
    st.lists(st.booleans(), min_size=32, max_size=32),
)
def test_every_lane_is_served_once_by_its_own_bank(words: list[int], active: list[bool]) -> None:
    if not any(active):
        return
    cells = Request(4 * np.array(words), active, space="shared").bank_cells
    served = [(lane, bank) for (_, bank), lanes in cells.items() for lane in lanes]
    assert sorted(served) == [(lane, words[lane] % 32) for lane in range(32) if active[lane]]


@given(
    st.sampled_from([1, 2, 4, 8, 16]),
    st.lists(st.integers(0, 200), min_size=32, max_size=32),
    st.lists(st.booleans(), min_size=32, max_size=32).filter(any),
)
def test_a_figure_shows_what_the_report_counts(size: int, elements: list[int], active: list[bool]) -> None:
    request = Request(size * np.array(elements), active, size=size)
    address, lanes = np.array([request.addresses]), np.array([request.active])
    assert len(request.sectors) == patterns.sectors(address, size, lanes)[0][0]
    assert request.wavefronts == patterns.wavefronts(address, size, lanes)[0][0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0] * 31,), "32 addresses"),
        (([0] * 32, [True] * 31), "32 active flags"),
        (([0] * 32, [False] * 32), "no lane takes part"),
        (([0] * 32, None, 3), "1, 2, 4, 8 or 16 bytes; got 3"),
    ],
)
def test_a_request_that_is_none_is_refused(arguments: Sequence, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Request(*arguments)


def test_coverage_needs_arrays_of_one_shape() -> None:
    with pytest.raises(ValueError, match="shape of the array"):
        Coverage(np.zeros((2, 3)), np.zeros((3, 2)))
