"""`python -m grading forget`: student data of before a date goes, all of it, and nothing else."""

from __future__ import annotations

import csv
import os
import shutil
from datetime import datetime
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from grading.__main__ import main
from grading.core.course import Course
from grading.core.graft import graft
from grading.core.verdicts import ExerciseVerdict, Line, NotebookVerdict, Store
from grading.lms import gradebook, retention
from grading.lms.tables import as_csv, write_grades
from tests.grading.conftest import LAB, Class

HANDED_IN = {"ann": "2026-06-01 10:00:00 UTC", "bob": "2027-06-01 10:00:00 UTC", "cy": ""}
BEFORE = "2027-01-01"


@pytest.fixture(scope="module")
def graded(released: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three graded students: of ann everything is old, of bob new, and of cy the files say when."""
    root = tmp_path_factory.mktemp("graded") / "course"
    shutil.copytree(released, root)
    course = Course(root, root / "grading")
    school = Class(course, course.submitted)
    digest = graft(school.released, school.notebook().cells, LAB, LAB).digest
    lines = (Line("right", 4, 4),)
    found = NotebookVerdict("key", digest, (ExerciseVerdict("memory.copy", "copy-check", lines),))
    writer = gradebook.Writer(course, LAB)
    for student, when in HANDED_IN.items():
        path = school.hand_in(student)
        stamp = path.with_name("timestamp.txt")
        if when:
            stamp.write_text(when)
        else:
            old = datetime(2026, 1, 1).timestamp()
            os.utime(path, (old, old))
        Store(course.verdicts).put(student, LAB, LAB, found)
        writer.write(gradebook.Graded(student, {LAB: school.notebook()}, {LAB: found}, stamp))
        (course.regrades).mkdir(exist_ok=True)
        (course.regrades / f"{student}@{LAB}@request.json").write_text("{}")
        (course.regrades / f"of {student}.toml").write_text(
            f'student = "{student}"\nlab = "{LAB}"\nwhy = "Look again."'
        )
        Store(course.regrades / "verdicts").put(student, LAB, LAB, found)
    rows: list[dict[str, object]] = [
        {"student": s, "lab": LAB, "points": 4, "state": "graded"} for s in HANDED_IN
    ]
    write_grades(course, {LAB}, rows)
    table = as_csv(["Student"], [{"Student": student} for student in HANDED_IN])
    (course.home / f"grades-{LAB}-canvas.csv").write_text(table)
    course.exported.write_text("student_id\nann\n")
    return root


@pytest.fixture
def course(graded: Path, tmp_path: Path) -> Course:
    shutil.copytree(graded, tmp_path / "course")  # with the times of its files
    return Course(tmp_path / "course", tmp_path / "course" / "grading")


def traces(course: Course, student: str) -> list[str]:
    """Where anything of a student is left."""
    named = [p for p in course.home.rglob("*") if student in p.relative_to(course.home).parts[-1]]
    found = [p.relative_to(course.home).as_posix() for p in named]
    if course.put_aside.exists():
        found += [line for line in course.put_aside.read_text().splitlines() if student in line]
    if course.grades.exists():
        found += [r["student"] for r in csv.DictReader(course.grades.open()) if r["student"] == student]
    with Gradebook(course.db_url) as book:
        found += [s.id for s in book.students if s.id == student]
        found += [s.student_id for a in book.assignments for s in a.submissions if s.student_id == student]
    return found


def test_without_yes_nothing_goes(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(course.home.rglob("*"))
    assert main(["forget", "--before", BEFORE], course) == 0
    said = capsys.readouterr().out
    assert "ann" in said and "cy" in said and "bob" not in said
    assert "data of 2 submissions from before 2027-01-01 would go for good; with --yes it does" in said
    assert sorted(p for p in course.home.rglob("*") if p.name != "running.lock") == before
    assert all(len(traces(course, student)) > 5 for student in HANDED_IN)


def test_with_yes_all_of_the_old_goes_and_the_new_stays(
    course: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = traces(course, "bob")
    assert main(["forget", "--before", BEFORE, "--yes"], course) == 0
    assert "deleted: data of 2 submissions" in capsys.readouterr().out
    assert traces(course, "ann") == traces(course, "cy") == []
    assert traces(course, "bob") == kept
    assert not (course.home / f"grades-{LAB}-canvas.csv").exists()  # ann was in it, too
    assert not course.exported.exists()
    assert main(["forget", "--before", BEFORE, "--yes"], course) == 0
    assert "data of 0 submissions" in capsys.readouterr().out
    assert main(["forget", "--before", "2028-01-01", "--yes"], course) == 0
    assert traces(course, "bob") == []
    assert course.labs.exists() and course.solutions.exists()


@pytest.mark.parametrize(
    ("table", "left"),
    [
        ('student_id,score\nann,1\nbob,2\n"cy",3\n', "student_id,score\nbob,2\n"),
        (
            f"assignment;student_id\r\n{LAB};ann\r\n{LAB};joann\r\n",
            f"assignment;student_id\r\n{LAB};joann\r\n",
        ),
        ("name\tid\nJosé\tann\nJosé\tbob\n", "name\tid\nJosé\tbob\n"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_table_that_was_put_aside_keeps_the_others_only(
    course: Course, table: str, left: str, encoding: str
) -> None:
    course.grades.write_bytes(table.encode(encoding))
    write_grades(course, {LAB}, [])
    assert main(["forget", "--before", BEFORE, "--yes"], course) == 0
    assert course.put_aside.read_bytes().decode() == left
    assert traces(course, "cy") == []


def test_a_table_that_was_put_aside_keeps_what_a_student_has_in_another_lab(course: Course) -> None:
    course.put_aside.write_text(f"assignment,student_id\n90_other,ann\n{LAB},ann\n")
    other = course.submitted / "bob" / "90_other"
    other.mkdir()
    (other / "90_other.ipynb").write_text("{}")
    assert main(["forget", "--before", BEFORE, "--yes"], course) == 0
    assert course.put_aside.read_text() == "assignment,student_id\n90_other,ann\n"


def test_a_request_alone_is_found_and_what_is_no_request_stays(course: Course) -> None:
    (course.regrades / "torn.toml").write_text("student =")
    alone = course.regrades / "later.toml"
    alone.write_text('student = "zoe"\nlab = "90_class"\nwhy = "?"')
    os.utime(alone, (0, 0))
    (old,) = [each for each in retention.past(course, datetime(2027, 1, 1)) if each.student == "zoe"]
    assert old.places == (alone,)
    retention.forget(course, [old])
    assert not alone.exists() and (course.regrades / "torn.toml").exists()


def test_a_request_that_names_a_folder_for_a_lab_deletes_nothing(course: Course) -> None:
    (course.regrades / "odd.toml").write_text('student = "ann"\nlab = "../bob"\nwhy = "?"')
    assert {each.lab for each in retention.past(course, datetime(2028, 1, 1))} == {LAB}


def test_an_id_with_an_at_is_not_anothers(course: Course) -> None:
    theirs = course.verdicts / LAB / f"ann@school.org@{LAB}.json"
    theirs.write_text("{}")
    found = {each.student: each for each in retention.past(course, datetime(2028, 1, 1))}
    assert theirs in found["ann@school.org"].places and theirs not in found["ann"].places


def test_what_was_interrupted_is_found_again(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(place: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(retention.shutil, "rmtree", stopped)  # after the gradebook, before the first folder
        assert main(["forget", "--before", BEFORE, "--yes"], course) == 130
    with Gradebook(course.db_url) as book:
        assert [student.id for student in book.students] == ["bob"]
    assert main(["forget", "--before", BEFORE, "--yes"], course) == 0
    assert traces(course, "ann") == traces(course, "cy") == []


@pytest.mark.parametrize("place", [f"ann/{LAB}.ipynb", "ann.ipynb", f"doe_jane_4711_99_{LAB}.ipynb"])
def test_a_submission_that_lies_otherwise_goes_too(course: Course, place: str) -> None:
    course.roster.write_text("id,canvas\nann,4711\nbob,1\ncy,2\n")
    old = (course.submitted / "ann" / LAB / f"{LAB}.ipynb").read_text()
    shutil.rmtree(course.submitted / "ann")
    path = course.submitted / place
    path.parent.mkdir(exist_ok=True)
    path.write_text(old)
    for each in (p for p in course.home.rglob("*") if "ann" in p.as_posix() or p == path):
        os.utime(each, (0, 0))
    assert main(["forget", "--before", BEFORE, "--yes"], course) == 0
    assert not path.exists() and traces(course, "ann") == []
    assert (course.submitted / "bob" / LAB / f"{LAB}.ipynb").exists()


def test_what_a_killed_run_left_goes_too(course: Course) -> None:
    staged = course.home / "staged" / "ann" / LAB / f"{LAB}.ipynb"
    staged.parent.mkdir(parents=True)
    staged.write_text("{}")
    torn = [course.verdicts / LAB / f".ann@{LAB}.json-x1", course.home / ".grades.csv-x2"]
    for path in torn:
        path.write_text("ann")
    assert main(["forget", "--before", BEFORE, "--yes"], course) == 0
    assert not staged.exists() and not any(path.exists() for path in torn)


def test_old_files_of_which_nobody_knows_whose_they_are_are_named(
    course: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    stray = course.submitted / "class.zip"
    stray.write_bytes(b"")
    os.utime(stray, (0, 0))
    (course.submitted / "new.zip").write_bytes(b"")
    later = datetime(2027, 6, 1).timestamp()
    os.utime(course.submitted / "new.zip", (later, later))
    assert main(["forget", "--before", BEFORE, "--yes"], course) == 0
    said = capsys.readouterr().out
    assert "still here" in said and "class.zip" in said and "new.zip" not in said and stray.exists()


def test_a_date_must_come_from_somewhere_and_be_one(
    course: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["forget"], course) == 1
    assert "before which date? Add --before 2027-10-01" in " ".join(capsys.readouterr().out.split())
    with pytest.raises(SystemExit):
        main(["forget", "--before", "yesterday"], course)
    assert "yesterday is no date such as 2027-10-01" in capsys.readouterr().err
    course.settings.write_text("[retention]\ndays = 10000")
    assert main(["forget"], course) == 0
    assert "data of 0 submissions" in capsys.readouterr().out


def test_a_course_without_anybody_has_nothing_to_forget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["forget", "--before", BEFORE, "--yes"], Course(tmp_path, tmp_path / "home")) == 0
    assert "deleted: data of 0 submissions" in capsys.readouterr().out


def test_one_student_goes_alone_and_what_still_names_the_student_is_said(
    course: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    course.roster.write_text("id\nbob\nbobby\n")
    course.settings.write_text("[[extension.bobby]]\ndays = 1\n")
    assert main(["forget", "bobb"], course) == 1
    assert "nothing of bobb (did you mean bob?) is in" in " ".join(capsys.readouterr().out.split())
    assert main(["forget", "bob"], course) == 0 and traces(course, "bob")
    assert "data of 1 submission of bob would go for good; with --yes it does" in capsys.readouterr().out
    assert main(["forget", "bob", "--yes"], course) == 0
    course.roster.unlink()
    assert not traces(course, "bob") and traces(course, "ann") and traces(course, "cy")
    said = " ".join(capsys.readouterr().out.split())
    assert "deleted: data of 1 submission of bob" in said
    assert "roster.csv still names bob: delete that by hand" in said and "course.toml still" not in said


def test_whoever_loses_a_grade_with_one_student_is_named(
    course: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[dict[str, object]] = [
        {"student": who, "lab": LAB, "points": 4, "state": "final", "handed_in_by": "ann" * (who == "dan")}
        for who in (*HANDED_IN, "dan")
    ]
    write_grades(course, {LAB}, rows)
    assert main(["forget", "ann"], course) == 0
    assert f"dan loses the grade of {LAB}, too: ann handed it in for the group" in capsys.readouterr().out
    assert main(["forget", "dan", "--yes"], course) == 0  # a member who did not hand it in goes alone
    assert "loses" not in capsys.readouterr().out and not traces(course, "dan") and traces(course, "ann")
