"""nbgrader's own commands and screens work in our folders, and say what the judge said."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import jupytext
import nbformat
import pytest
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from traitlets.config import PyFileConfigLoader

from grading.authoring.release import current_files
from grading.core.course import ROOT, Course
from grading.core.graft import graft
from grading.core.verdicts import ExerciseVerdict, Line, NotebookVerdict, Store
from grading.lms import gradebook
from grading.lms.nbgrader import nbgrader_config
from tests.grading.conftest import LAB, Class
from tests.grading.pages import configure
from tests.grading.test_feedback import shown

REASON = "32 threads <b>read</b> one bank; a tile of 32 × 33 has none"


def nbgrader(course: Course, *arguments: str) -> str:
    """Run nbgrader's command line with the course's configuration."""
    configure(course)
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments],
        cwd=course.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def verdict(digest: str) -> NotebookVerdict:
    lines = (Line("right", 1.6, 1.6, "6 of 6 sizes"), Line("bank conflicts", 0.4, 2.4, "32-way", REASON))
    found = ExerciseVerdict("memory.copy", "copy-check", lines, ("31", "98,765"))
    return NotebookVerdict("key", digest, (found,), compiler="NVVM 13.5", device="A100 simulated")


@pytest.fixture
def submitted(school: Class) -> Course:
    """A submission where nbgrader looks for it, and a verdict on it in the store."""
    course = school.course
    path = course.submitted / "ann" / LAB / f"{LAB}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(school.notebook(), path)
    digest = graft(school.released, school.notebook().cells, LAB, LAB).digest
    Store(course.verdicts).put("ann", LAB, LAB, verdict(digest))
    return course


def test_the_configuration_of_the_project_is_read_by_nbgrader() -> None:
    config = PyFileConfigLoader("nbgrader_config.py", path=str(ROOT / "grading")).load_config()
    assert config.CourseDirectory.source_directory == "solutions"
    assert config.CourseDirectory.submitted_directory == "grading/submitted"
    assert config.CourseDirectory.root == str(ROOT)


def test_generate_assignment_writes_the_same_bytes_as_our_release(course: Course) -> None:
    ours = current_files(course, LAB)
    source = course.solutions / LAB / f"{LAB}.py"
    jupytext.write(jupytext.read(source), source.with_suffix(".ipynb"))
    nbgrader(course, "generate_assignment", LAB, "--force")
    assert current_files(course, LAB) == ours


def without_numbers(page: str) -> str:
    """nbconvert numbers some elements at random."""
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "", page)


def test_autograde_and_feedback_of_the_command_line_carry_the_stored_verdict(
    submitted: Course, school: Class
) -> None:
    nbgrader(submitted, "autograde", LAB)
    nbgrader(submitted, "generate_feedback", LAB)
    page = (submitted.feedback / "ann" / LAB / f"{LAB}.html").read_text()
    assert "bank conflicts   0.4 of 2.4   32-way" in page
    assert "&lt;b&gt;read&lt;/b&gt; one bank" in page
    assert "judged with NVVM 13.5, A100 simulated, at 31 and 98,765" in page
    with Gradebook(f"sqlite:///{submitted.gradebook}") as book:
        assert book.find_grade("copy-check", LAB, LAB, "ann").auto_score == 2.0
        without = book.find_grade("sectors-check", LAB, LAB, "ann")
        assert without.auto_score == 0 and without.needs_manual_grade
    found = Store(submitted.verdicts).get("ann", LAB, LAB)
    assert found is not None
    gradebook.Writer(submitted, LAB).write(gradebook.Graded("ann", {LAB: school.notebook()}, {LAB: found}))
    ours = (submitted.feedback / "ann" / LAB / f"{LAB}.html").read_text()
    # The same page, from its template to its points.
    assert shown(without_numbers(ours)) == shown(without_numbers(page))


def test_a_submission_that_changed_after_its_verdict_gets_no_points_for_it(
    submitted: Course, school: Class
) -> None:
    nbformat.write(
        school.notebook({"copy": "changed = 1"}), submitted.submitted / "ann" / LAB / f"{LAB}.ipynb"
    )
    nbgrader(submitted, "autograde", LAB)
    with Gradebook(f"sqlite:///{submitted.gradebook}") as book:
        assert book.find_submission(LAB, "ann").score == 0
    out = nbformat.read(submitted.autograded / "ann" / LAB / f"{LAB}.ipynb", 4)
    assert "no verdict yet" in json.dumps(out)


def test_the_api_behind_formgrader_sees_the_class(submitted: Course, school: Class) -> None:
    notebook = school.notebook()
    found = Store(submitted.verdicts).get("ann", LAB, LAB)
    assert found is not None
    gradebook.Writer(submitted, LAB).write(gradebook.Graded("ann", {LAB: notebook}, {LAB: found}))
    config = nbgrader_config(submitted)
    api = NbGraderAPI(coursedir=CourseDirectory(config=config), config=config)
    (assignment,) = api.get_assignments()
    assert assignment["name"] == LAB and assignment["num_submissions"] == 1
    (submission,) = api.get_submissions(LAB)
    assert submission["autograded"] and submission["score"] == 2.0 and submission["needs_manual_grade"]


@pytest.mark.slow
def test_formgrader_shows_the_graded_notebook_with_its_reasons(submitted: Course) -> None:
    nbgrader(submitted, "autograde", LAB)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [
            sys.executable, "-m", "jupyter_server", f"--port={port}", "--no-browser", "--allow-root",
            "--IdentityProvider.token=", "--ServerApp.password=", f"--ServerApp.root_dir={submitted.root}",
            "--ServerApp.jpserver_extensions={'nbgrader.server_extensions.formgrader': True}",
        ],
        cwd=submitted.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "JUPYTER_CONFIG_DIR": str(submitted.root / "none")},
    )  # fmt: skip
    try:
        submission = _get(port, f"/formgrader/api/submitted_notebooks/{LAB}/{LAB}")
        assert '"score": 2.0' in submission
        name = json.loads(submission)[0]["id"]
        page = _get(port, f"/formgrader/submissions/{name}/")
        assert "bank conflicts" in page and "&lt;b&gt;read" in page
    finally:
        server.terminate()
        server.wait(20)


def _get(port: int, path: str) -> str:
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
                return str(answer.read().decode())
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def test_nothing_of_ours_is_left_in_the_staging_folder(submitted: Course, school: Class) -> None:
    found = Store(submitted.verdicts).get("ann", LAB, LAB)
    assert found is not None
    gradebook.Writer(submitted, LAB).write(gradebook.Graded("ann", {LAB: school.notebook()}, {LAB: found}))
    assert list(Path(submitted.home / "staged").iterdir()) == []
