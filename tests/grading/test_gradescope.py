"""The zip for Gradescope: its scripts judge a submission in an empty folder as they would in the container."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from grading.__main__ import main
from grading.authoring import gradescope
from grading.core import sandbox
from grading.core.course import ROOT, Course
from grading.core.sandbox import Limits
from tests.grading.conftest import LAB, Class

START = "00_start_here"


@pytest.fixture
def autograder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """What /autograder is in the container after setup.sh, but for the environment, which is this one."""
    path = tmp_path / "autograder.zip"
    assert main(["gradescope", "00", str(path)], Course(ROOT, tmp_path / "home")) == 0
    assert "keep it to yourself" in capsys.readouterr().out
    with zipfile.ZipFile(path) as packed:
        packed.extractall(tmp_path / "autograder" / "source")
    (tmp_path / "autograder" / "source" / "course" / ".venv").symlink_to(Path(sys.prefix))
    (tmp_path / "autograder" / "submission").mkdir()
    return tmp_path / "autograder"


def run(autograder: Path) -> dict[str, Any]:
    script = autograder / "source" / "run_autograder"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GPULAB"))}
    done = subprocess.run(
        ["bash", script], env={**kept, "AUTOGRADER": str(autograder)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads((autograder / "results" / "results.json").read_text()))


def test_it_holds_no_solution_and_nothing_of_the_class_and_its_scripts_are_programs(tmp_path: Path) -> None:
    path = gradescope.pack(Course(ROOT, tmp_path), START, tmp_path / "a.zip")
    with zipfile.ZipFile(path) as packed:
        names = packed.namelist()
        assert [n for n in names if "/" not in n] == ["setup.sh", "run_autograder"]
        assert all(packed.getinfo(n).external_attr >> 16 & 0o111 for n in ("setup.sh", "run_autograder"))
        packed.extract("setup.sh", tmp_path)
    assert subprocess.run(["bash", "-n", tmp_path / "setup.sh"]).returncode == 0
    labs = [n for n in names if n.startswith("course/labs/")]
    assert f"course/labs/{START}/{START}.ipynb" in labs
    assert all(name.startswith(f"course/labs/{START}/") for name in labs)
    for kept_back in ("solutions/", "grading/secret", "gradebook", "submitted", "redteam", "verdicts/"):
        assert not [n for n in names if f"course/{kept_back}" in n or f"course/grading/{kept_back}" in n]


def test_in_the_container_a_notebook_becomes_a_report(needs_sandbox: None, autograder: Path) -> None:
    released = ROOT / "labs" / START / f"{START}.ipynb"
    (autograder / "submission" / f"{START}-1.ipynb").write_bytes(released.read_bytes())
    report = run(autograder)
    assert report["score"] == 0 and "ran in a sandbox" in report["output"]
    (double,) = (test for test in report["tests"] if test["name"] == "start.double")
    assert double["max_score"] > 0 and double["status"] == "failed" and double["output"]


def test_a_submission_without_a_notebook_is_told_so(needs_sandbox: None, autograder: Path) -> None:
    (autograder / "submission" / "homework.pdf").write_bytes(b"%PDF")
    report = run(autograder)
    assert report["score"] == 0 and "found: homework.pdf" in json.dumps(report)


def test_right_answers_have_their_points_and_a_container_without_walls_is_named(
    needs_sandbox: None, school: Class, monkeypatch: pytest.MonkeyPatch
) -> None:
    school.hand_in("ann", {"sectors": "def sectors(addresses, size):\n    return 0\n"})
    found = gradescope.results(school.course, LAB, school.folder / "ann" / LAB, Limits())
    assert found["score"] == 8.0 and "why (2 points)" in str(found["output"])
    monkeypatch.setattr(sandbox, "obstacle", lambda: "no namespaces")
    found = gradescope.results(school.course, LAB, school.folder / "ann" / LAB, Limits())
    assert found["score"] == 8.0
    assert "WITHOUT a sandbox" in str(found["output"]) and "no namespaces" in str(found["output"])
