"""A class of eight: each gets what the answer deserves, with the reason, and none stops the others."""

from __future__ import annotations

import csv
import dataclasses
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from nbformat import NotebookNode
from nbgrader.api import Gradebook

from gpulab import cuda
from gpulab.checks import find, registry
from gpulab.checks.checking import examine
from gpulab.checks.spec import Answer
from grading.core import sandbox
from grading.core.course import Course
from grading.core.sandbox import Limits
from grading.core.verdicts import NotebookVerdict, Store
from grading.lms import classroom
from tests.grading.conftest import LAB, SOLUTIONS, Class, cell_of

LIMITS = Limits(seconds=60, patience=12)
WRONG = SOLUTIONS / LAB / "wrong"

SLOW_COPY = (WRONG / "copy_blocked.py").read_text()
WRONG_COPY = (WRONG / "copy_drops_the_rest.py").read_text()
SLOW_TRANSPOSE = """
@cuda.jit
def transpose(a, out):
    x, y = cuda.grid(2)
    if y < a.shape[0] and x < a.shape[1]:
        out[x, y] = a[y, x]
"""
ENDLESS = "while True:\n    pass"
CRASHING = "import os\nos._exit(3)"
# Makes every comparison true and every check happy, for whoever believes this process.
PATCHES = """
import numpy as np, numpy.testing, gpulab, builtins
numpy.testing.assert_allclose = np.allclose = np.array_equal = lambda *a, **k: True
gpulab.check = lambda *a, **k: 99
import gpulab.checks.checking, gpulab.checks.compare
gpulab.checks.compare.mismatch = lambda *a, **k: None
gpulab.checks.checking.check = gpulab.check

@cuda.jit
def copy(a, b):
    b[cuda.grid(1)] = 0
"""
# The right answers at a public size on the public contents, from a table, for whoever judges with those.
TABLE = """
from gpulab.checks import cases, registry
exercise = registry.find("memory.copy")
public = next(c for c in exercise.cases if c.sizes["n"] == 1023)
ANSWERS = np.resize(cases.arguments(exercise, public)[0].value, 4096)

@cuda.jit
def copy(a, b):
    table = cuda.const.array_like(ANSWERS)
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        b[i] = table[i % 1023]
"""
SMALL_TABLE = TABLE.replace("4096", "1023")


def cheat_in_the_notebook(notebook: NotebookNode) -> None:
    """Delete one test cell, copy and rewrite another, make a third worth a thousand points."""
    notebook.cells.remove(cell_of(notebook, "copy-check"))
    check = cell_of(notebook, "sectors-check")
    twin = notebook.cells[notebook.cells.index(check)].copy()
    twin["id"], twin["source"] = "twin", "100"
    notebook.cells.append(twin)
    check.source = "3"
    cell_of(notebook, "transpose-check").metadata.nbgrader.points = 1000
    cell_of(notebook, "why").metadata.nbgrader.update(grade=True, solution=False, points=50)


Graded = tuple[Course, dict[str, NotebookVerdict], float]


@pytest.fixture(scope="module")
def graded(released: Path, tmp_path_factory: pytest.TempPathFactory) -> Graded:
    if why := sandbox.obstacle():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("class")
    shutil.copytree(released, folder / "course")
    school = Class(Course(folder / "course", folder / "course" / "grading"), folder / "handed_in")
    wrong_sectors = "def sectors(addresses, size):\n    return 4"
    school.hand_in("right")
    school.hand_in("slow", {"copy": SLOW_COPY, "transpose": SLOW_TRANSPOSE})
    school.hand_in("wrong", {"copy": WRONG_COPY, "sectors": wrong_sectors})
    school.hand_in_stub("empty")
    school.hand_in("endless", {"sectors": ENDLESS})
    school.hand_in("crashing", {"transpose": CRASHING})
    school.hand_in("patcher", {"copy": PATCHES, "sectors": wrong_sectors}, cheat_in_the_notebook)
    school.hand_in("table", {"copy": TABLE})
    began = time.monotonic()
    classroom.grade(school.course, LAB, school.folder, limits=LIMITS)
    seconds = time.monotonic() - began
    store = Store(school.course.verdicts)
    students = [p.name for p in school.folder.iterdir()]
    return school.course, {s: store.get(s, LAB, LAB) for s in students}, seconds


def points(verdict: NotebookVerdict) -> dict[str, float]:
    return {e.exercise.partition(".")[2]: e.points for e in verdict.exercises}


def reasons(verdict: NotebookVerdict, exercise: str) -> str:
    found = next(e for e in verdict.exercises if e.exercise == f"memory.{exercise}")
    return "\n".join([*(f"{x.summary}\n{x.reason}" for x in found.lines), *found.notes])


def test_each_gets_what_the_answer_deserves_with_the_reason(graded: Graded) -> None:
    _, verdicts, seconds = graded
    full = {"copy": 4.0, "sectors": 3.0, "transpose": 4.0}
    assert not any(v.ungraded or any(e.ungraded for e in v.exercises) for v in verdicts.values())

    assert points(verdicts["right"]) == full
    assert points(verdicts["slow"])["sectors"] == 3.0
    assert points(verdicts["slow"])["copy"] == pytest.approx(1.6)
    assert 1.6 <= points(verdicts["slow"])["transpose"] < 3
    assert "131,072 sectors" in reasons(verdicts["slow"], "copy")
    assert "out[x, y] = a[y, x]" in reasons(verdicts["slow"], "transpose")

    assert points(verdicts["wrong"]) == {**full, "copy": 0, "sectors": 0}
    assert "should be" in reasons(verdicts["wrong"], "copy")
    assert "should be" in reasons(verdicts["wrong"], "sectors")

    assert set(points(verdicts["empty"]).values()) == {0}
    assert "empty" in reasons(verdicts["empty"], "copy")
    assert "NotImplementedError" in reasons(verdicts["empty"], "sectors")

    assert points(verdicts["endless"]) == {**full, "sectors": 0}
    assert "stopped after 12 s" in reasons(verdicts["endless"], "sectors")

    assert points(verdicts["crashing"]) == {**full, "transpose": 0}
    assert "the process ended" in reasons(verdicts["crashing"], "transpose")

    assert points(verdicts["patcher"]) == {**full, "copy": 0, "sectors": 0}
    assert points(verdicts["table"]) == {**full, "copy": 0}
    assert "constants" in reasons(verdicts["table"], "copy")
    assert seconds < 240  # benchmarks tell how fast it is; here only that nobody waits for a limit twice


def test_gradebook_feedback_and_grades_say_what_the_verdicts_say(graded: Graded) -> None:
    course, verdicts, _ = graded
    with Gradebook(f"sqlite:///{course.gradebook}") as book:
        scores = {s: book.find_submission(LAB, s) for s in verdicts}
        assert {s: x.score for s, x in scores.items()} == {
            s: pytest.approx(v.points) for s, v in verdicts.items()
        }
        assert {x.max_score for x in scores.values()} == {13.0}
        written = book.find_grade("why", LAB, LAB, "right")
        assert written.needs_manual_grade and written.auto_score is None
    page = (course.feedback / "slow" / LAB / f"{LAB}.html").read_text()
    assert "load sectors" in page and "131,072 sectors" in page.replace("  ", " ")
    rows = list(csv.DictReader(course.grades.open()))
    assert {r["student"]: float(r["points"]) for r in rows} == {
        s: pytest.approx(v.points) for s, v in verdicts.items()
    }
    states = {r["student"]: r["state"] for r in rows}
    assert states.pop("empty") == "final"  # nothing was written, so nothing waits for a person
    assert states.pop("crashing") == "2 answers wait"  # a person looks at what ended the process
    assert set(states.values()) == {"1 answer waits"}


@pytest.mark.slow
def test_a_small_table_of_answers_is_only_a_wrong_result(needs_sandbox: None, school: Class) -> None:
    school.hand_in("table", {"copy": SMALL_TABLE})
    classroom.grade(school.course, LAB, school.folder, limits=LIMITS)
    verdict = Store(school.course.verdicts).get("table", LAB, LAB)
    assert points(verdict)["copy"] == 0
    assert "should be" in reasons(verdict, "copy")


def test_the_table_is_right_for_whoever_judges_on_public_contents() -> None:
    names: dict[str, object] = {"np": np, "cuda": cuda}
    exec(compile(SMALL_TABLE, "<table>", "exec"), names)
    exercise = find("memory.copy")
    small = tuple(c for c in exercise.cases if c.sizes["n"] == 1023)
    public = dataclasses.replace(exercise, cases=small, budgets=())
    answer = Answer(public, names["copy"], registry.reference("memory.copy"))
    assert examine(answer)[0].state == "pass"


def test_ctrl_c_ends_recordings_and_replays_at_once(needs_sandbox: None, school: Class) -> None:
    for i in range(4):
        school.hand_in(f"s{i}", {"sectors": f"n = {i}\n{ENDLESS}"})
    began = time.monotonic()
    threading.Timer(4, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        classroom.grade(school.course, LAB, school.folder, limits=Limits(seconds=60, patience=50))
    assert time.monotonic() - began < 20
    assert not school.course.grades.exists()
