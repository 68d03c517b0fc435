"""A cohort has sizes and contents of its own, of the same kind as the published ones."""

from __future__ import annotations

import json
from math import ceil, gcd
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.checks import EVERY, cases, cohort, registry
from gpulab.checks.cohort import NOBODY, Cohort, alike, of_cohort, renumbered

VARYING = [e for e in registry.exercises() if e.varies]
seeds = st.integers(0, 2**32 - 1)


@given(st.integers(0, 200_000))
def test_sizes_alike_have_as_many_warps_and_the_same_alignment(size: int) -> None:
    for other in alike(size):
        assert other != size
        assert ceil(other / 32) == ceil(size / 32)
        assert gcd(other, 32) == gcd(size, 32)


@pytest.mark.parametrize("size", [0, 1, 2, 32, 4096])
def test_what_is_special_about_a_size_is_kept(size: int) -> None:
    assert alike(size) == []


@given(seeds)
def test_cases_of_a_cohort_are_named_after_their_sizes_and_named_in_budgets(seed: int) -> None:
    for exercise in VARYING:
        varied = of_cohort(exercise, Cohort("a class", seed))
        names = [case.name for case in varied.cases]
        assert len(set(names)) == len(names)
        assert {b.case for b in varied.budgets} <= {*names, None, EVERY}
        assert getattr(varied.evidence, "race_case", None) in (None, *names)
        for case, before in zip(varied.cases, exercise.cases, strict=True):
            for name in exercise.varies:
                old, new = before.sizes[name], case.sizes[name]
                if {str(old), f"{old:,}"} & set(before.name.split()):
                    assert {str(new), f"{new:,}"} & set(case.name.split()), (exercise.name, case)


def test_two_cohorts_differ_and_one_is_always_the_same() -> None:
    for exercise in VARYING:
        first, again, second = (of_cohort(exercise, Cohort("", seed)) for seed in (1, 1, 2))
        assert first.cases == again.cases
        assert first.cases != exercise.cases
        assert {c.name for c in first.cases} | {c.name for c in second.cases} > {c.name for c in first.cases}


def test_the_published_course_has_the_sizes_of_its_modules() -> None:
    assert cohort.load(Path("no such file")) == NOBODY
    for exercise in VARYING:
        assert of_cohort(exercise, NOBODY) is exercise


def test_equal_sizes_stay_equal() -> None:
    exercise = registry.find("memory.blur")
    square = cohort.numbers(exercise, Cohort("", 7))
    assert len(set(square.values())) == len(square)
    assert not set(square) & set(square.values())


def test_numbers_change_where_they_are_whole() -> None:
    assert renumbered("1,023 of 1023, not 11023 or 10", {1023: 1001}) == "1,001 of 1001, not 11023 or 10"


def test_contents_come_from_the_cohorts_seed() -> None:
    exercise = registry.find("start.double")
    first, second = (cases.arguments(exercise, exercise.cases[0], seed)[0].value for seed in (1, 2))
    assert not np.array_equal(first, second)


def test_a_file_names_the_cohort(tmp_path: Path) -> None:
    path = tmp_path / "cohort.json"
    path.write_text(json.dumps({"name": "Autumn", "seed": 5}))
    assert cohort.load(path) == Cohort("Autumn", 5)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": "x", "seed": "many"}'])
def test_a_damaged_file_is_said_to_be_one(tmp_path: Path, text: str) -> None:
    path = tmp_path / "cohort.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"cohort\.json is damaged: take it from the course's repository"):
        cohort.load(path)
