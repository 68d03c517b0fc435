"""The arithmetic of agreement: errors, ratios, Kendall's rank correlation."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from validation.agreement import agreement, kendall

numbers = st.integers(-5, 5).map(float)
several = st.lists(st.tuples(numbers, numbers), min_size=2, max_size=12)


def by_counting(pairs):
    """τ-b as it is defined, pair by pair."""
    same = other = tied_first = tied_second = 0
    for (a, b), (c, d) in combinations(pairs, 2):
        product = (a - c) * (b - d)
        same += product > 0
        other += product < 0
        tied_first += a == c
        tied_second += b == d
    every = len(pairs) * (len(pairs) - 1) // 2
    untied = (every - tied_first) * (every - tied_second)
    return (same - other) / untied**0.5 if untied else None


@given(several)
def test_kendall_is_what_counting_pair_by_pair_gives(pairs):
    assert kendall(pairs) == pytest.approx(by_counting(pairs))


@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=20, unique=True))
def test_kendall_is_one_for_the_same_order_and_minus_one_for_the_reverse(values):
    assert kendall([(v, 3 * v) for v in values]) == pytest.approx(1)
    assert kendall([(v, -v) for v in values]) == pytest.approx(-1)


def test_kendall_of_one_pair_or_of_a_constant_is_none():
    assert kendall([(1, 2)]) is None
    assert kendall([(1, 2), (1, 3)]) is None


def test_kendall_of_a_known_example():
    """12 of 15 pairs in the same order, 3 in the other one."""
    assert kendall(list(enumerate([2, 1, 4, 3, 6, 5]))) == pytest.approx(9 / 15)


def test_errors_are_relative_to_what_was_measured():
    found = agreement([(110.0, 100.0), (50.0, 100.0), (7.0, 7.0), (3.0, 0.0)])
    assert (found.pairs, found.exact) == (4, 1)
    assert found.mean_error == pytest.approx(0.2)
    assert found.median_error == pytest.approx(0.1)
    assert found.ratio == 1.0


def test_of_nothing_there_is_no_error():
    found = agreement([])
    assert (found.pairs, found.exact, found.ratio, found.mean_error) == (0, 0, None, None)
