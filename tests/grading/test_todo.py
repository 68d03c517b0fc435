"""After each run: what is left for a person to do, and the command for it."""

from __future__ import annotations

import csv
import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from grading.__main__ import main
from grading.core.commands import ours
from grading.core.course import Course
from grading.lms import gradebook, todo
from tests.grading.conftest import LAB, Class, cell_of
from tests.grading.test_bad_input import no_sandbox_needed
from tests.grading.test_deliveries import zipped
from tests.grading.test_final import give, grade

__all__ = ["no_sandbox_needed"]  # a fixture that every test here uses

Said = pytest.CaptureFixture[str]


def left(capsys: Said) -> list[str]:
    """The last lines of a run: a heading, and a line for each task."""
    lines = capsys.readouterr().out.splitlines()
    starts = [
        i for i, line in enumerate(lines) if line == "left to do:" or line.startswith("nothing is left")
    ]
    return [line.strip() for line in lines[starts[-1] :]]


def test_each_thing_that_waits_is_told_with_its_command(school: Class, capsys: Said) -> None:
    course = school.course
    course.home.mkdir(exist_ok=True)
    course.roster.write_text("id\nann\nbob\ncy\ngone\n")
    for student in ("ann", "cy", "eve"):
        school.hand_in(student)
    school.hand_in("bob").write_text("{")
    assert grade(course, school.folder, "--export", "canvas") == 0
    heading, answers, unread, refused, handing_out = left(capsys)
    assert heading == "left to do:"
    assert answers.startswith("1. 2 answers wait for a person (ann, cy): (cd ")
    root = " --allow-root" if os.geteuid() == 0 else ""
    assert answers.endswith(f"jupyter lab{root}), then Formgrader, Manual Grading, {LAB}")
    assert unread.startswith("2. 1 hand-in has no verdict (bob: notebook is not JSON")
    assert f"{ours('grade', LAB, 'FOLDER')}, or give points: (cd " in unread
    assert refused.startswith("3. 1 file was refused (eve): do what the line above says")
    assert refused.endswith(" again; or delete the row in grades.csv if nobody is to be graded for it")
    assert handing_out == (f"4. 3 grades are not final; afterwards: {ours('grade', LAB, '--export canvas')}")


def test_the_command_that_opens_formgrader_leads_to_a_jupyter_and_the_configuration(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    course.home.mkdir(exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert todo.formgrader(course).endswith("jupyter lab --allow-root)")  # without it Jupyter does not start
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    command = todo.formgrader(course).removeprefix("(").removesuffix(" lab)")
    done = subprocess.run(f"({command} --version; pwd)", shell=True, capture_output=True, text=True)
    assert "jupyter_core" in done.stdout and done.stdout.endswith(f"{course.home}\n")
    assert shlex.split(command)[1] == "course/grading"


def test_when_all_is_done_it_says_how_to_hand_it_out_and_then_that_nothing_is_left(
    school: Class, tmp_path: Path, capsys: Said
) -> None:
    course = school.course
    content = json.dumps(school.notebook()).encode()
    delivery = zipped(tmp_path / "a.zip", {f"Ann Doe_11_assignsubmission_file_/{LAB}.ipynb": content})
    grade(course, delivery)
    assert left(capsys)[1].startswith("1. 1 answer waits for a person (11): ")
    give(course, "11", 1.0)
    grade(course)
    command = ours("grade", LAB, "--export moodle --feedback moodle")
    assert left(capsys) == ["left to do:", f"1. all grades are final; to hand them out: {command}"]
    assert main(shlex.split(command)[3:], course) == 0
    assert left(capsys) == [f"nothing is left to do for {LAB}"]
    grade(course)
    assert left(capsys) == [f"nothing is left to do for {LAB}"], "it was handed out already"
    give(course, "11", 0.5)
    grade(course)
    assert left(capsys)[1] == f"1. 1 grade not as exported (11); to hand them out: {command}"


def test_other_labs_and_requests_that_wait_are_named(school: Class, capsys: Said) -> None:
    course = school.course
    other = "91_other"
    for place in (course.solutions, course.labs):
        shutil.copytree(place / LAB, place / other)
    school.hand_in("ann")
    school.hand_in("no one!")
    grade(course, school.folder)
    released = {LAB: school.released}
    gradebook.register(course, other, released)
    stub = school.folder.parent / "other"
    (stub / "bob" / other).mkdir(parents=True)
    nothing = {"why": cell_of(school.released, "why").source}
    (stub / "bob" / other / f"{LAB}.ipynb").write_text(json.dumps(school.notebook(nothing)))
    course.regrades.mkdir(exist_ok=True)
    (course.regrades / "one.toml").write_text(f'student = "ann"\nlab = "{LAB}"\nwhy = "Look again."')
    (course.regrades / "two.toml").write_text(f'student = "ann"\nlab = "{LAB}"\nwhy = "And again."')
    (course.regrades / f"ann@{LAB}@two.json").write_text("{}")
    by_mail = f'student = "ann@uni.edu"\nlab = "{LAB}"\nwhy = "By mail."'
    (course.regrades / "ann@uni.edu.toml").write_text(by_mail)
    (course.regrades / f"ann@uni.edu@{LAB}@ann@uni.edu.json").write_text("{}")
    capsys.readouterr()
    assert main(["grade", other, str(stub), "--export", "canvas"], course) == 0
    assert left(capsys) == [
        "left to do:",
        f"1. 1 request for a regrade (one.toml): {ours('regrades')}",
        f"2. other labs: {LAB} (1 grade not final; nobody's file: no one!)",
    ]
    with course.grades.open() as file:
        states = {(row["lab"], row["student"]): row["state"] for row in csv.DictReader(file)}
    assert states[LAB, "no one!"] == "unmatched"  # a run of another lab loses no file


def test_requests_that_cannot_be_read_are_named_until_they_are_gone(school: Class, capsys: Said) -> None:
    course = school.course
    school.hand_in("ann")
    (course.regrades).mkdir(parents=True)
    (course.regrades / "bad.toml").write_text("student = ")
    (course.regrades / "letter.pdf").write_text("%PDF")
    grade(course, school.folder)
    line = next(line for line in left(capsys) if "no requests" in line and "files" in line)
    assert line == (
        "2. 2 files are no requests that can be read (bad.toml, letter.pdf): correct or delete them in "
        f"{course.regrades}; {ours('regrades')} says what is wrong"
    )
