"""One hand-in for several students: judged and read once, and everybody in the group has the grade."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path

import pytest

from grading.__main__ import main
from grading.core.errors import GradingError
from grading.lms import settings
from tests.grading.conftest import LAB, Class, cell_of
from tests.grading.test_bad_input import FakeJudge, no_sandbox_needed
from tests.grading.test_deliveries import zipped
from tests.grading.test_final import exported, give, grade, rows

__all__ = ["no_sandbox_needed"]  # a fixture that every test here uses

RED = '[[group]]\nname = "red"\nmembers = ["ann", "bob", "cy"]\n'


@pytest.fixture
def team(school: Class) -> Class:
    """A class of four, three of them in a group."""
    school.course.home.mkdir(exist_ok=True)
    school.course.roster.write_text(
        "id,canvas,moodle,name\nann,1,11,A Doe\nbob,2,12,B Roe\ncy,3,13,C Poe\ndan,4,14,D\n"
    )
    school.course.settings.write_text(RED)
    return school


def test_what_one_member_hands_in_is_everybodys_grade(
    team: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    course = team.course
    team.hand_in("bob")
    FakeJudge.asked.clear()
    assert grade(course, team.folder) == 0
    assert len(FakeJudge.asked) == 1
    assert "1. 1 answer waits for a person (bob)" in capsys.readouterr().out
    give(course, "bob", 1.5)
    assert grade(course, "--export", "canvas") == 0
    assert exported(course) == {"ann": "12.50", "bob": "12.50", "cy": "12.50", "dan": ""}
    found = {who: (row["state"], row["handed_in_by"]) for who, row in rows(course).items()}
    assert found == {
        "ann": ("final", "bob"), "bob": ("final", ""), "cy": ("final", "bob"), "dan": ("missing", ""),
    }  # fmt: skip


def test_moodle_sends_a_copy_for_each_member_and_gets_a_page_for_each_back(
    team: Class, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course, content = team.course, json.dumps(team.notebook()).encode()
    numbers = {"A Doe": 101, "B Roe": 102, "C Poe": 103}  # of this assignment
    names = [f"{name}_{number}_assignsubmission_file_" for name, number in numbers.items()]
    delivery = zipped(tmp_path / "all.zip", {f"{name}/{LAB}.ipynb": content for name in names})
    FakeJudge.asked.clear()
    assert grade(course, delivery) == 0
    assert len(FakeJudge.asked) == 1
    give(course, "ann", 2.0)
    assert grade(course, "--export", "moodle", "--feedback", "moodle") == 0
    with (course.home / f"grades-{LAB}-moodle.csv").open() as file:
        points = {row["Identifier"]: row["Grade"] for row in csv.DictReader(file)}
    assert points == {
        "Participant 101": "13.00", "Participant 102": "13.00", "Participant 103": "13.00", "Participant 14": "",
    }  # fmt: skip
    with zipfile.ZipFile(course.home / f"feedback-{LAB}-moodle.zip") as packed:
        assert packed.namelist() == [f"{name}/{LAB}.html" for name in names]


def test_members_with_different_files_are_graded_each_for_its_own_and_named(
    team: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    team.hand_in("ann")
    team.hand_in("bob", {"copy": "x = 1"})
    assert grade(team.course, team.folder) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "group red: ann, bob handed in different files; each gets the grade of its own" in said
    assert {who: row["handed_in_by"] for who, row in rows(team.course).items()} == {
        "ann": "", "bob": "", "cy": "ann", "dan": "",
    }  # fmt: skip


def test_an_id_that_nobody_has_is_named(team: Class, capsys: pytest.CaptureFixture[str]) -> None:
    team.course.settings.write_text(RED.replace("cy", "psy"))
    team.hand_in("ann")
    assert grade(team.course, team.folder) == 0
    assert "group red: nobody has the id psy" in " ".join(capsys.readouterr().out.split())


def test_a_member_may_ask_for_a_regrade_and_is_forgotten_with_the_group(
    team: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    course = team.course
    team.hand_in("ann")
    assert grade(course, team.folder) == 0
    course.regrades.mkdir(exist_ok=True)
    (course.regrades / "one.toml").write_text(f'student = "cy"\nlab = "{LAB}"\nwhy = "Look again."')
    capsys.readouterr()
    assert main(["regrades", "--unsafe"], course) == 0
    assert "nothing of cy" not in capsys.readouterr().out
    assert main(["forget", "--before", "2100-01-01", "--yes"], course) == 0
    assert set(rows(course)) <= {"dan"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[group]\nred = ["a", "b"]', "'group' has a table for each group"),
        ('[[group]]\nmembers = ["a", "b"]', "has no name"),
        ('[[group]]\nname = "red"\nmembers = "ab"', "members is no list of names"),
        ('[[group]]\nname = "red"\nmembers = ["a"]', "fewer than two members"),
        ('[[group]]\nname = "red"\nmembers = ["a", "b"]\nlabs = ["99_x"]', "there is no lab '99_x'"),
        ('[[group]]\nname = "red"\nmembers = ["a", "b"]\nlab = "04"', "has no 'lab'"),
        (RED + RED.replace("red", "blue"), "ann is in two groups of one lab, red and blue"),
    ],
)
def test_a_group_that_cannot_be_is_one_line(team: Class, text: str, words: str) -> None:
    team.course.settings.write_text(text)
    with pytest.raises(GradingError) as caught:
        settings.read(team.course)
    assert words in str(caught.value)


def test_canvas_shows_the_page_of_a_group_to_its_members_and_the_run_says_when(
    team: Class, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course, nothing = team.course, {"why": cell_of(team.released, "why").source}
    content = json.dumps(team.notebook(nothing)).encode()
    delivery = zipped(tmp_path / "all.zip", {f"roeb_2_90_{LAB}.ipynb": content})
    assert grade(course, delivery, "--feedback", "canvas") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "handed in by another member of the group: ann (by bob), cy (by bob). If the assignment in" in said
    assert "no file that Canvas numbered" not in said
