"""Attacks get what their honest part deserves, with the reason; honest answers that look odd get full marks."""

from __future__ import annotations

from functools import cache

import pytest

from grading.course import Course
from grading.redteam.plays import Play, judge, plays, runs
from grading.verdicts import ExerciseVerdict

pytestmark = pytest.mark.usefixtures("needs_sandbox")
COURSE = Course()
KINDS = {kind: plays(kind) for kind in ("attacks", "honest")}
RUNS = {kind: runs(COURSE, chosen) for kind, chosen in KINDS.items()}


@cache
def verdicts(kind: str, run: int) -> dict[str, dict[str, ExerciseVerdict]]:
    return judge(COURSE, RUNS[kind][run])


def each(kind: str) -> list[pytest.param]:
    """Every play with the number of the run that it is judged in."""
    return [
        pytest.param(play, number, id=play.name.replace("_", " "), marks=[pytest.mark.slow] * play.slow)
        for number, together in enumerate(RUNS[kind])
        for play in together
    ]


@pytest.mark.parametrize(("play", "run"), each("attacks"))
def test_an_attack_earns_what_its_honest_part_deserves(play: Play, run: int) -> None:
    assert play.problem(verdicts("attacks", run)[play.name]) == ""


@pytest.mark.parametrize(("play", "run"), each("honest"))
def test_an_honest_answer_gets_full_marks(play: Play, run: int) -> None:
    assert play.problem(verdicts("honest", run)[play.name]) == ""
