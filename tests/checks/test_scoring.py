"""Points of a budget: full when met, none at the naive value, in between along the way in halvings."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.checks import Budget, budgets, messages
from gpulab.checks.scoring import score, share
from tests.checks import toys


@pytest.mark.parametrize(
    ("sense", "value", "limit", "naive", "expected"),
    [
        ("<=", 4.0, 4, 32, 1.0),
        ("<=", 3.0, 4, 32, 1.0),
        ("<=", 32.0, 4, 32, 0.0),
        ("<=", 40.0, 4, 32, 0.0),
        ("<=", 8.0, 4, 32, 2 / 3),  # two of three halvings
        ("<=", 16.0, 4, 32, 1 / 3),
        ("<=", 5.0, 4, None, 0.0),
        (">=", 99.0, 99, 50, 1.0),
        (">=", 50.0, 99, 50, 0.0),
        ("==", 2.0, 2, None, 1.0),
        ("==", 1.0, 2, None, 0.0),
        ("==", 1.0, 2, 8, 0.0),  # too far: not what was asked for
        ("<=", 5.0, 0, 10, 0.5),  # to zero the way is linear
        ("<=", None, 4, 32, 1.0),  # nothing to count costs nothing …
        (">=", None, 4, 1, 0.0),  # … and is not enough
        ("<=", float("inf"), 4, 32, 0.0),
    ],
)
def test_the_share_of_a_budget(
    sense: str, value: float | None, limit: float, naive: float | None, expected: float
) -> None:
    assert share(sense, value, limit, naive) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("sense", "value", "limit", "unit", "shown"),
    [
        ("<=", 0.3504, 0.35, "× that of reserving", "0.3504 × that of reserving"),
        ("<=", 4.004, 4, "% of all tokens", "4.004 % of all tokens"),
        ("<=", 1200.01, 1200.0, "ms", "1,200.01 ms"),
        (">=", 98.996, 99, "%", "98.996 %"),
        ("<=", 0.3496, 0.35, "s", "0.35 s"),  # met: nothing to tell apart
    ],
)
def test_a_value_that_misses_its_limit_is_never_shown_as_the_limit(sense, value, limit, unit, shown):
    budget = Budget("count", limit, 1, "count", sense=sense, unit=unit)
    assert messages.budget(budget, value, limit, None).startswith(f"{shown}   ")


@given(st.floats(0.1, 1e6), st.floats(1.5, 100))
def test_less_is_never_worth_less(value: float, factor: float) -> None:
    assert 0 <= share("<=", value * factor, 4, 4096) <= share("<=", value, 4, 4096) <= 1


def test_limit_and_naive_may_depend_on_the_sizes() -> None:
    budget = Budget("atomics", lambda s: 2 * int(s["n"]), 1.0, "atomics", naive=lambda s: 32 * int(s["n"]))
    assert score(budget, 20, {"n": 10}).met
    assert score(budget, 320, {"n": 10}).share == 0


def test_a_sense_that_does_not_exist_is_a_mistake_of_the_lab() -> None:
    with pytest.raises(ValueError, match="a budget's sense is"):
        share("<", 1.0, 2, None)


def test_next_to_the_limit_the_difference_is_told_and_not_a_ratio_of_one() -> None:
    asked = Budget("global_requests", 1026, 1, "requests", advice="That is {times} × it. Why?")
    assert budgets.question(asked, score(asked, 1030, {})) == "That is 4 requests more than the budget. Why?"
    assert budgets.question(asked, score(asked, 2052, {})) == "That is 2 × it. Why?"


def test_of_what_was_counted_at_many_questions_the_worst_stays() -> None:
    limits = (Budget("steps", 5, 1, "steps"), Budget("found", 5, 1, "found", sense=">="))
    asked = dataclasses.replace(toys.DOUBLE, budgets=limits)
    counts: dict[str, float] = {}
    for steps, found in ((3, 8), (7, 6), (5, 9)):
        budgets.keep_worst(asked, counts, {"steps": steps, "found": found, "beside": steps})
    assert counts == {"steps": 7, "found": 6, "beside": 7}
