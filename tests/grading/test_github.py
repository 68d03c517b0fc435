"""GitHub Classroom: an Action that checks each push and reports points, and clones that are graded."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from gpulab.app import cli, whole_file
from grading.__main__ import main
from grading.core.course import ROOT, Course
from tests.grading.conftest import LAB, Class
from tests.grading.test_bad_input import no_sandbox_needed
from tests.grading.test_final import grade, rows
from tests.grading.test_own_course import files, learner

__all__ = ["no_sandbox_needed"]  # a fixture that every test here uses

START = "labs/00_start_here/00_start_here.ipynb"


def test_a_push_is_checked_and_its_points_are_reported(tmp_path: Path) -> None:
    course, folder = Course(ROOT, tmp_path / "home"), tmp_path / "lab-00"
    arguments = ["course", str(folder), "--labs", "00", "--name", "Autumn"]
    assert main([*arguments, "--classroom"], course) == 0
    assert main(arguments, course) == 0  # brought up to date, it keeps the Action
    action = yaml.safe_load(files(folder)[".github/workflows/check.yml"].read_text())
    command = action["jobs"]["check"]["steps"][-1]["run"]
    assert command == ".venv/bin/gpulab check labs/[0-9]*/*.ipynb" and (folder / START).is_file()
    done = learner(folder, "-c", f"import os; os.environ['GITHUB_ACTIONS'] = 'true'; import sys; "
                   f"from gpulab.app.cli import main; sys.exit(main(['check', {START!r}]))")  # fmt: skip
    assert done.returncode == 1, done.stderr
    (found,) = re.findall(r"^::notice title=Autograding report::(.*)$", done.stdout, re.M)
    said = json.loads(found)
    assert said["totalPoints"] == 0 and said["maxPoints"] > 0


SCRIPT = """
import gpulab
from gpulab import cuda

@cuda.jit
def double(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = 2 * a[i]

gpulab.check("start.double", double)
worst = 1 / 0
gpulab.check("start.worst_line", worst)
"""


def test_a_whole_file_is_checked_exercise_by_exercise_and_one_that_fails_costs_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, page = tmp_path / "work.py", tmp_path / "summary.md"
    path.write_text(SCRIPT)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    right, wrong = whole_file.points(path)
    assert right.points == right.of > 0 == wrong.points and "ZeroDivisionError" in wrong.reason
    assert cli.main(["check", str(path)]) == 1
    assert "::notice" not in (out := capsys.readouterr().out) and f"of {right.of + wrong.of:g} points" in out
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    assert cli.main(["check", str(path)]) == 1
    assert f"::notice title=Autograding complete::Points {right.of:g}/" in capsys.readouterr().out
    assert "| start.double |" in page.read_text()
    path.write_text("x = 1")
    assert cli.main(["check", str(path)]) == 2
    assert "checks no exercise" in capsys.readouterr().err


def test_clones_are_graded_by_the_users_names_on_the_roster(
    school: Class, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course = school.course
    course.home.mkdir(exist_ok=True)
    course.roster.write_text("id,github,name\n1001,ada-l,Ada\n1002,L,Lou\n")
    for user in ("ada-l", "l"):
        clone = tmp_path / "clones" / f"lab-04-{user}"
        (clone / "labs" / LAB).mkdir(parents=True)
        (clone / "README.md").write_text("The course")
        (clone / "labs" / LAB / "drawings").mkdir()
        shutil.copy(school.hand_in(user), clone / "labs" / LAB)
        (clone / "labs" / LAB / "timestamp.txt").write_text(
            "2027-01-16T10:00:00+01:00\n"
        )  # git log --format=%cI
    course.settings.write_text(f'timezone = "UTC"\n[due]\n{LAB} = 2027-01-15T12:00:00\n[late]\nper_day = 10')
    (course.labs / LAB / "drawings").mkdir()  # released with the lab
    assert grade(course, tmp_path / "clones") == 0
    assert "not looked at" not in capsys.readouterr().out
    found = {who: (row["points"], row["late"], row["why"]) for who, row in rows(course).items()}
    assert found == dict.fromkeys(("1001", "1002"), ("11.0", "-1.1", "late by 21 h; 10 % off"))
