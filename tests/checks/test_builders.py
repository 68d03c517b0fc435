"""The sectors that budgets at any size allow are those that warps touch, counted one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gpulab.checks.builders import sectors_of_neighbours, sectors_of_rows


def touched(elements: list[int]) -> int:
    """Sectors of one request for elements of 4 bytes."""
    return len({element // 8 for element in elements})


def parts(first: int, stop: int, lanes: int = 32) -> list[list[int]]:
    """Requests of so many neighbours."""
    return [list(range(at, min(at + lanes, stop))) for at in range(first, stop, lanes)]


@given(rows=st.integers(0, 40), cols=st.integers(0, 140))
def test_rows_cost_the_sectors_that_their_warps_touch(rows: int, cols: int) -> None:
    requests = [part for row in range(rows) for part in parts(row * cols, (row + 1) * cols)]
    assert sectors_of_rows(rows, cols) == sum(map(touched, requests))


@given(n=st.integers(0, 5000) | st.sampled_from((1024, 4096)), blocks=st.sampled_from((1, 2, 4, 8)))
def test_elements_in_any_order_of_neighbours_keep_within_the_sectors_allowed(n: int, blocks: int) -> None:
    chunk = -(-n // blocks)
    forward = parts(0, n)
    backward = [[n - 1 - i for i in part] for part in forward]
    by_block = [p for block in range(blocks) for p in parts(block * chunk, min(n, (block + 1) * chunk))]
    for requests in (forward, backward, by_block):
        assert sum(map(touched, requests)) <= sectors_of_neighbours(n, blocks)


@given(st.integers(1, 8))
def test_whole_rounds_are_allowed_no_sector_too_many(thousands: int) -> None:
    assert sectors_of_neighbours(1024 * thousands, 4) == 128 * thousands


@given(n=st.integers(1, 500), lanes=st.integers(1, 31))
def test_lanes_that_are_fewer_than_a_warp_have_sectors_for_their_number(n: int, lanes: int) -> None:
    assert sum(map(touched, parts(0, n, lanes))) <= sectors_of_neighbours(n, 1, lanes)
    assert sectors_of_neighbours(n, 1, lanes) < 4 * n + 12
