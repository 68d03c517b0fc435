"""Attacks get what their honest part deserves, with the reason; honest answers that look odd get full marks."""

from __future__ import annotations

import json
from functools import cache

import pytest

from grading.__main__ import main
from grading.core.course import Course
from grading.core.graft import graft
from grading.core.notebooks import questions, read_submitted
from grading.core.sandbox import Limits
from grading.core.verdicts import ExerciseVerdict
from grading.lms import classroom
from grading.redteam.plays import Act, Play, acts, judge, plays, runs, source_of
from tests.grading.conftest import LAB, Class

pytestmark = pytest.mark.usefixtures("needs_sandbox")
COURSE = Course()
NOTEBOOKS, HAND_INS = acts("notebooks"), acts("hand_ins")
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


@pytest.mark.parametrize("act", NOTEBOOKS, ids=lambda act: act.name.replace("_", " "))
def test_what_is_done_to_a_notebook_changes_no_answer_and_no_point(school: Class, act: Act) -> None:
    plain = graft(school.released, read_submitted(school.hand_in("plain")), LAB, LAB)
    notebook = json.loads(json.dumps(school.notebook()))
    act.do(notebook)
    path = school.hand_in("edited")
    path.write_text(json.dumps(notebook))
    found = graft(school.released, read_submitted(path), LAB, LAB)
    assert found.digest == plain.digest and found.notebook == plain.notebook
    assert questions(found.notebook) == questions(school.released)
    assert act.says in " ".join(found.notes.values())


def test_what_is_handed_in_costs_nobody_else_a_point(school: Class) -> None:
    good = school.hand_in("good")
    school.course.verdicts.mkdir(parents=True)
    for act in HAND_INS:
        path = school.path(act.name)
        path.parent.mkdir(parents=True)
        act.do(path, good.read_bytes(), school.course)
    result = classroom.grade(school.course, LAB, school.folder, limits=Limits(seconds=60, patience=20))
    assert result.points("good") == 11 and not result.reason("good")
    for act in HAND_INS:
        said = refusal.reason if (refusal := result.refused.get(act.name)) else result.reason(act.name)
        assert act.says in said, (act.name, said)
        assert bool(said) == bool(act.says), (act.name, said)
        assert act.name in result.refused or result.points(act.name) == act.earns, act.name
    rows = school.course.grades.read_text()
    assert "owned" not in rows and "<script>" not in rows


def test_there_are_many_of_both() -> None:
    assert len(KINDS["attacks"]) + len(NOTEBOOKS) + len(HAND_INS) >= 200 and len(KINDS["honest"]) >= 150
    # Labs 23 to 28 have exercises of their own kinds: clusters, tensor maps, tensor cores, languages of tiles.
    new = {
        kind: [p for p in found if "23" <= source_of(COURSE, p.exercise).name[:2] <= "28"]
        for kind, found in KINDS.items()
    }
    assert len(new["attacks"]) >= 25 and len(new["honest"]) >= 15


def test_the_command_judges_one_lab_and_names_those_that_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["redteam", "02"]) == 0
    assert "5 of 5 ended as they should" in capsys.readouterr().out
    assert main(["redteam", "98"]) == 1
    assert "nothing on lab '98'; there is on 00, 01, 02" in capsys.readouterr().out
