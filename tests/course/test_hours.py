"""Hours follow from one formula: what a notebook states is in its range, and its front names the range."""

from __future__ import annotations

import re

import pytest

from grading.authoring import hours

NOTEBOOKS = hours.notebooks()
SAID = re.compile(r"^# \*\*([\d.]+) to ([\d.]+) hours\.\*\*", re.MULTILINE)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_states_hours_within_the_range_of_the_formula(path) -> None:
    low, high = hours.effort(path).range
    assert low - 0.5 <= hours.stated(path) <= high + 0.5, (
        "work the range out again: grading/authoring/hours.py"
    )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_the_front_of_a_notebook_names_that_range(path) -> None:
    said = SAID.findall(path.read_text(encoding="utf-8"))
    assert len(said) == 1
    for here, there in zip(map(float, said[0]), hours.effort(path).range, strict=True):
        assert abs(here - there) <= 0.5, f"the formula says {hours.effort(path).said}"


def test_every_kind_of_work_counts() -> None:
    nothing = hours.Effort(0, 0, 0, 0, 0, 0)
    assert nothing.hours == 0
    for field, minutes in (
        ("words", 1 / 140), ("exercises", 8), ("lines", 1), ("predictions", 2), ("answers", 10), ("cells", 0.75)
    ):  # fmt: skip
        more = hours.Effort(**{**vars(nothing), field: 1})
        assert 60 * more.hours == pytest.approx(minutes)
    assert hours.Effort(0, 2, 0, 0, 1, 0, project=True).hours == pytest.approx((2 * 45 + 40) / 60)


def test_a_range_is_in_half_hours_and_reads_as_one() -> None:
    effort = hours.Effort(1400, 6, 50, 6, 1, 40)  # 10 + 48 + 50 + 12 + 10 + 30 minutes
    assert effort.hours == pytest.approx(160 / 60)
    assert effort.range == (2.0, 3.5) and effort.said == "2 to 3.5 hours"
