"""What goes wrong around a class: one line each, nothing lost, nothing doubled, and the next run goes on."""

from __future__ import annotations

import csv
import os
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from grading.__main__ import main
from grading.core import judge
from grading.core.commands import ours
from grading.core.course import ROOT, Course
from grading.core.graft import Graft
from grading.core.notebooks import Question
from grading.core.verdicts import ExerciseVerdict, Line, NotebookVerdict
from grading.lms import classroom
from grading.lms.tables import read_grades, write_grades
from tests.grading.conftest import LAB, Class

GOOD = {"memory.copy": 4.0, "memory.sectors": 3.0, "memory.transpose": 4.0}


class FakeJudge(judge.Judge):
    """Gives full marks at once, and counts how often it is asked. What is tested here lies around it."""

    asked: list[str] = []  # noqa: RUF012 – shared on purpose
    slow = 0.0

    def verdict(self, graft: Graft, questions: tuple[Question, ...], key: str) -> NotebookVerdict:
        time.sleep(self.slow)
        self.asked.append(graft.digest)
        lines = {q.exercise: (Line("right", q.points, q.points),) for q in questions}
        return NotebookVerdict(
            key,
            graft.digest,
            tuple(ExerciseVerdict(q.exercise, q.cell, lines[q.exercise]) for q in questions),
        )


@pytest.fixture(autouse=True)
def no_sandbox_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classroom, "Judge", FakeJudge)
    monkeypatch.setattr(classroom.sandbox, "obstacle", lambda: "")
    monkeypatch.setattr(classroom.environment, "digest", lambda course, extra=(): "same")
    FakeJudge.asked = []
    FakeJudge.slow = 0.0


def grade(course: Course, folder: Path) -> int:
    return main(["grade", LAB, str(folder), "--workers", "2"], course)


def lines(capsys: pytest.CaptureFixture[str], word: str) -> list[str]:
    return [line for line in capsys.readouterr().out.splitlines() if word in line]


def scores(course: Course) -> dict[str, float]:
    with Gradebook(f"sqlite:///{course.gradebook}") as book:
        return {s.student.id: s.score for s in book.assignment_submissions(LAB)}


def test_broken_submissions_are_one_line_each_and_stop_nobody(
    school: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    school.hand_in("ann")
    school.hand_in("broken").write_text('{"cells": [')
    school.hand_in("foreign").write_text('{"cells": []}')
    school.hand_in("absent").rename(school.folder / "absent" / "other.ipynb").write_text('{"cells": []}')
    school.hand_in("renamed").rename(school.folder / "renamed" / "mine.ipynb")  # its cells say what it is
    link = school.hand_in("linked")
    link.unlink()
    link.symlink_to(school.path("ann"))
    school.hand_in("no student!")
    (school.folder / "no hand-in!").mkdir()
    school.hand_in("zoe")
    assert grade(school.course, school.folder) == 0
    said = capsys.readouterr().out.splitlines()

    def about(student: str, out: list[str] = said) -> str:
        found = [line for line in out if line.split(maxsplit=1)[-1].startswith(student)]
        assert len(found) == 1, (student, out)
        return found[0]

    assert "notebook is not JSON (line 1)" in about("broken")
    assert "no solution cell" in about("foreign")
    assert f"no notebook {LAB}.ipynb was handed in; found: ../other.ipynb" in about("absent")
    assert "link" in about("linked")
    assert "no student id" in about("no student!")
    assert scores(school.course) == {
        "ann": 11,
        "zoe": 11,
        "broken": 0,
        "foreign": 0,
        "absent": 0,
        "linked": 0,
        "renamed": 11,
    }
    with Gradebook(f"sqlite:///{school.course.gradebook}") as book:
        grade_of_broken = book.find_grade("copy-check", LAB, LAB, "broken")
        assert grade_of_broken.needs_manual_grade and grade_of_broken.auto_score == 0
    page = (school.course.feedback / "broken" / LAB / f"{LAB}.html").read_text()
    assert "ungraded: notebook is not JSON (line 1)" in page
    rows = {r["student"]: r["state"] for r in csv.DictReader(school.course.grades.open())}
    assert (rows["ann"], rows["broken"], rows["no student!"]) == ("1 answer waits", "ungraded", "unmatched")
    assert grade(school.course, school.course.submitted) == 0  # a later run names whose file is lost
    said = capsys.readouterr().out.splitlines()
    assert "no student id" in about("no student!", said) and not any("no hand-in!" in line for line in said)


def test_an_unknown_student_is_refused_and_leaves_no_trace(
    school: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    school.hand_in("ann")
    school.hand_in("mallory")
    school.hand_in("anna")
    school.course.home.mkdir(exist_ok=True)
    school.course.roster.write_text("id,first_name\nann,Ann\n")
    assert grade(school.course, school.folder) == 0
    misspelt, unknown = lines(capsys, "not on the roster")
    assert "(did you mean ann?)" in misspelt and "did you mean" not in unknown
    assert scores(school.course) == {"ann": 11}


def test_a_second_run_judges_nothing_and_writes_nothing(school: Class) -> None:
    school.hand_in("ann")
    school.hand_in("bob")
    grade(school.course, school.folder)
    page = school.course.feedback / "ann" / LAB / f"{LAB}.html"
    before, asked = page.stat().st_mtime_ns, list(FakeJudge.asked)
    grades = school.course.grades.read_text()
    grade(school.course, school.folder)
    assert FakeJudge.asked == asked
    assert page.stat().st_mtime_ns == before
    assert school.course.grades.read_text() == grades


def test_a_notebook_that_is_only_read_is_nothing_to_hand_in_and_stops_nobody(school: Class) -> None:
    text = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# To read")])
    nbformat.write(text, school.course.labs / LAB / f"{LAB}_landscape.ipynb")
    school.hand_in("without")
    path = school.hand_in("with_it")
    nbformat.write(text, path.with_name(f"{LAB}_landscape.ipynb"))
    assert grade(school.course, school.folder) == 0
    assert scores(school.course) == {"without": sum(GOOD.values()), "with_it": sum(GOOD.values())}


def test_only_a_changed_submission_is_judged_again(school: Class) -> None:
    school.hand_in("ann")
    school.hand_in("bob")
    grade(school.course, school.folder)
    FakeJudge.asked.clear()
    school.hand_in("bob", {"copy": "x = 1"})
    grade(school.course, school.folder)
    assert len(FakeJudge.asked) == 1
    ann, bob = csv.DictReader(school.course.grades.open())
    assert (ann["student"], bob["student"]) == ("ann", "bob")
    assert ann == {**bob, "student": "ann"} and ann["state"] == "1 answer waits" and ann["reason"] == ""


def test_points_given_by_a_person_survive_another_run(school: Class) -> None:
    school.hand_in("ann")
    grade(school.course, school.folder)
    with Gradebook(f"sqlite:///{school.course.gradebook}") as book:
        written = book.find_grade("why", LAB, LAB, "ann")
        written.manual_score, written.needs_manual_grade = 2.0, False
        book.db.commit()
    grade(school.course, school.folder)
    with Gradebook(f"sqlite:///{school.course.gradebook}") as book:
        written = book.find_grade("why", LAB, LAB, "ann")
        assert written.score == 2.0 and not written.needs_manual_grade


def test_ctrl_c_keeps_what_was_judged_and_the_next_run_does_the_rest(
    school: Class, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    students = 16  # enough that a busy machine notices the interrupt before the last one
    for i in range(students):
        school.hand_in(f"s{i}", {"copy": f"x = {i}"})
    FakeJudge.slow = 0.2
    real, stored = classroom.Store.put, []

    def put(*arguments: object) -> None:
        real(*arguments)  # type: ignore[arg-type]
        stored.append(arguments)
        if len(stored) == 2:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(classroom.Store, "put", put)
    assert grade(school.course, school.folder) == 130
    assert lines(capsys, "nothing is lost")
    monkeypatch.setattr(classroom.Store, "put", real)
    kept = len(list((school.course.verdicts / LAB).glob("*.json")))
    assert 2 <= kept < students
    FakeJudge.asked.clear()
    other = school.folder.parent / "one" / "s0"
    shutil.copytree(school.folder / "s0", other)
    assert grade(school.course, other.parent) == 0  # a run of one student does not forget the others
    assert lines(capsys, f"before its end; to go on: {ours('grade', LAB, school.folder)}")
    assert grade(school.course, school.folder) == 0
    assert not lines(capsys, "was stopped before its end")
    assert len(FakeJudge.asked) == students - kept
    assert scores(school.course) == {f"s{i}": 11 for i in range(students)}


def test_a_full_disk_is_one_line_and_the_next_run_does_the_rest(school: Class) -> None:
    school.hand_in("ann")
    script = textwrap.dedent(
        f"""
        import resource, sys
        from pathlib import Path
        from grading.lms import classroom
        from grading.__main__ import main
        from grading.core.course import Course
        from tests.grading.test_bad_input import FakeJudge
        classroom.Judge, classroom.sandbox.obstacle = FakeJudge, lambda: ""
        classroom.environment.digest = lambda course, extra=(): "same"
        from grading.core.verdicts import Store
        def full(*arguments, put=Store.put):
            put(*arguments)  # and there is no more room
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
        if sys.argv[2] == "later":
            Store.put = full
        else:
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
        root = Path({str(school.course.root)!r})
        sys.exit(main(["grade", {LAB!r}, {str(school.folder)!r}], Course(root, root / "grading")))
        """
    )

    def run(limit: int, when: str = "later") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", script, str(limit), when]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)

    full = run(20_000)
    assert full.returncode == 1, full
    assert "Traceback" not in full.stderr + full.stdout
    assert len(full.stdout.strip().splitlines()) == 1 and "run the same command again" in full.stdout
    assert list((school.course.verdicts / LAB).glob("*.json"))
    again = run(resource.RLIM_INFINITY)
    assert again.returncode == 0, again
    assert scores(school.course) == {"ann": 11}
    school.course.gradebook.unlink()
    school.hand_in("bob", {"copy": "x = 1"})
    early = run(20_000, "at once")  # no room for a gradebook: said before an hour is spent on verdicts
    assert early.returncode == 1 and len(early.stdout.strip().splitlines()) == 1, early
    assert not list((school.course.verdicts / LAB).glob("bob@*"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["grade", "99_none", "."], "no released lab '99_none'"),
        (["grade", LAB, "nowhere"], "no folder nowhere"),
        (["grade", LAB, "/dev/null"], "neither a folder nor a zip file"),
        (["grade", LAB, ".", "--roster", "/"], "no roster /: give a CSV file"),
        (["grade", LAB, ".", "--roster", "nowhere.csv"], "no roster nowhere.csv"),
        (["grade", LAB, ".", "--gradebook", "mysql://h/x"], "SQLite or PostgreSQL, not mysql"),
        (["similar", "99_none", "."], "no released lab '99_none'"),
        (["similar", LAB, "nowhere"], "no folder nowhere"),
        (["regrades", "nowhere"], "no folder nowhere"),
        (["release", "99_none"], "no lab '99_none'"),
        (["forget"], "before which date?"),
    ],
)
def test_a_command_that_cannot_work_is_one_line(
    course: Course, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments, course) == 1
    out = capsys.readouterr().out.strip().splitlines()
    assert len(out) == 1 and words in out[0]


@pytest.mark.parametrize(
    "wrong", [["--workers", "-1"], ["--workers", "0"], ["--limit", "0"], ["--limit", "nan"]]
)
def test_a_limit_or_a_number_of_workers_that_cannot_be_is_refused(
    course: Course, wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["grade", LAB, ".", *wrong], course)
    assert "above 0" in capsys.readouterr().err


def test_a_table_of_grades_with_other_columns_is_put_aside(course: Course) -> None:
    course.grades.write_text("assignment,score\n04,1\n")
    assert read_grades(course) == []
    for lab in ("01", "02", "01"):
        write_grades(course, {lab}, [{"student": "ann", "lab": lab, "points": 1}])
    assert [row["lab"] for row in read_grades(course)] == ["01", "02"]
    assert (course.home / "grades-before.csv").read_text().startswith("assignment")


def test_a_second_run_at_the_same_time_is_refused_in_one_line(
    school: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    school.hand_in("ann")
    with classroom.alone(school.course):
        assert grade(school.course, school.folder) == 1
    assert len(lines(capsys, "another run is grading")) == 1
    assert grade(school.course, school.folder) == 0


def test_scripts_and_formulas_in_a_submission_run_nowhere(school: Class) -> None:
    school.hand_in("ann", {"why": "Because. <script>alert(1)</script><img src=x onerror=alert(2)>"})
    school.hand_in("=cmd()")
    grade(school.course, school.folder)
    page = (school.course.feedback / "ann" / LAB / f"{LAB}.html").read_text()
    assert "Because." in page
    assert "&lt;script&gt;alert" in page and "<script>alert" not in page and "<img src=x" not in page
    assert "\n'=cmd()," in school.course.grades.read_text()


def test_one_file_per_student_and_one_folder_per_student_are_understood(school: Class) -> None:
    flat, folders = school.folder.parent / "flat", school.folder.parent / "folders"
    flat.mkdir()
    (folders / "bob").mkdir(parents=True)
    school.hand_in("x").rename(flat / "ann.ipynb")
    school.hand_in("x").rename(folders / "bob" / f"{LAB}.ipynb")
    grade(school.course, flat)
    grade(school.course, folders)
    assert scores(school.course) == {"ann": 11, "bob": 11}
