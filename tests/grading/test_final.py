"""The final table: whatever a term brings, each grade is there, right, and says whether it is final."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbgrader.api import Gradebook

from grading.__main__ import main
from grading.authoring.release import release
from grading.core.course import Course
from grading.lms import classroom, gradebook
from tests.grading.conftest import LAB, Class
from tests.grading.test_bad_input import no_sandbox_needed

__all__ = ["no_sandbox_needed"]  # a fixture that every test here uses

Row = dict[str, str]
PART = f"{LAB}_b"


def grade(course: Course, *arguments: object) -> int:
    return main(["grade", LAB, *map(str, arguments), "--workers", "2"], course)


def rows(course: Course) -> dict[str, Row]:
    with course.grades.open() as file:
        return {row["student"]: row for row in csv.DictReader(file) if row["lab"] == LAB}


def exported(course: Course, layout: str = "canvas") -> dict[str, str]:
    """Canvas's cells by login."""
    with (course.home / f"grades-{LAB}-{layout}.csv").open() as file:
        return {row["SIS Login ID"]: row[LAB] for row in csv.DictReader(file) if row["SIS Login ID"]}


def give(course: Course, student: str, points: float, cell: str = "why", notebook: str = LAB) -> None:
    """What formgrader does when a person types points."""
    with Gradebook(course.db_url) as book:
        found = book.find_grade(cell, notebook, LAB, student)
        found.manual_score, found.needs_manual_grade = points, False
        book.db.commit()


@pytest.fixture
def roster(course: Course) -> Path:
    course.home.mkdir(exist_ok=True)
    course.roster.write_text('id,canvas,name\nann,1,"Doe, Ann"\nbob,2,Bob Roe\nlate,3,Lena Late\ncy,4,\n')
    return course.roster


def alone(school: Class, student: str) -> Path:
    """A folder with one student's hand-in."""
    folder = school.folder.parent / f"only_{student}"
    shutil.copytree(school.folder / student, folder / student)
    return folder


def test_a_late_student_graded_alone_leaves_the_others_as_they_are(school: Class, roster: Path) -> None:
    course = school.course
    school.hand_in("ann")
    school.hand_in("bob")
    assert grade(course, school.folder, "--export", "canvas") == 0
    give(course, "ann", 2.0)
    shutil.rmtree(school.folder)
    school.hand_in("late")
    assert grade(course, school.folder, "--export", "canvas") == 0
    found = rows(course)
    assert {who: row["state"] for who, row in found.items()} == {
        "ann": "final", "bob": "1 answer waits", "cy": "missing", "late": "1 answer waits",
    }  # fmt: skip
    assert found["ann"]["name"] == "Doe, Ann"
    assert (found["ann"]["points"], found["ann"]["by_hand"], found["ann"]["total"]) == ("13.0", "2.0", "13.0")
    assert exported(course) == {"ann": "13.00", "bob": "", "cy": "", "late": ""}


def test_the_whole_class_graded_again_does_not_lose_the_late_one(school: Class, roster: Path) -> None:
    course = school.course
    school.hand_in("late")
    grade(course, alone(school, "late"))
    give(course, "late", 1.0)
    shutil.rmtree(school.folder)
    school.hand_in("ann")
    assert grade(course, school.folder, "--export", "canvas") == 0
    assert rows(course)["late"]["total"] == "12.0" and exported(course)["late"] == "12.00"
    with (course.home / f"grades-{LAB}.csv").open() as file:
        table = {row["student"]: row for row in csv.DictReader(file)}
    assert table["late"]["memory.copy"] == "4.0" and table["late"]["why"] == "1.0"
    assert table["ann"]["why"] == "" and table["ann"]["state"] == "1 answer waits"


def test_points_given_to_somebody_ungraded_reach_the_export(school: Class, roster: Path) -> None:
    course = school.course
    school.hand_in("ann").write_text("{")
    grade(course, school.folder, "--export", "canvas")
    row = rows(course)["ann"]
    assert row["state"] == "ungraded" and "not JSON" in row["reason"] and exported(course)["ann"] == ""
    for cell, points in (("copy-check", 3.0), ("sectors-check", 2.5), ("transpose-check", 0.0)):
        give(course, "ann", points, cell)
    grade(course, school.folder, "--export", "canvas")
    row = rows(course)["ann"]
    assert (row["state"], row["reason"], row["by_hand"], row["total"]) == ("final", "", "5.5", "5.5")
    assert exported(course)["ann"] == "5.50"


@pytest.mark.parametrize("place", [0, 2, -1])
def test_an_answer_that_uses_a_cell_of_ones_own_keeps_its_points(
    school: Class, roster: Path, place: int
) -> None:
    def helped(notebook: NotebookNode) -> None:
        answer = next(
            c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == "sectors"
        )
        body = answer.source.replace("def sectors(", "def found_sectors(")
        answer.source = "def sectors(addresses, size):\n    return found_sectors(addresses, size)"
        notebook.cells.insert(place % len(notebook.cells), nbformat.v4.new_code_cell(body))

    school.hand_in("bob", edit=helped)
    school.hand_in("ann")
    grade(school.course, school.folder)
    assert rows(school.course)["bob"]["points"] == rows(school.course)["ann"]["points"] == "11.0"


@pytest.fixture
def two_parts(school: Class) -> Class:
    """The lab with a second notebook, which is the first one under another name."""
    course = school.course
    source = course.solutions / LAB / f"{LAB}.py"
    shutil.copy(source, source.with_name(f"{PART}.py"))
    release(course, LAB)
    gradebook.register(course, LAB, classroom.open_lab(course, LAB).notebooks)
    return school


def test_a_notebook_of_two_that_is_missing_counts_nothing_and_says_so(
    two_parts: Class, roster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course = two_parts.course
    two_parts.hand_in("ann")
    assert grade(course, two_parts.folder, "--export", "canvas") == 0
    give(course, "ann", 2.0)
    assert grade(course, two_parts.folder, "--export", "canvas") == 0
    row = rows(course)["ann"]
    assert (row["state"], row["total"], row["of"]) == ("final", "13.0", "26.0")
    assert exported(course)["ann"] == "13.00"
    page = (course.feedback / "ann" / LAB / f"{PART}.html").read_text()
    assert f"{PART}.ipynb was not handed in, which counts as 0 points" in page
    assert f"that was not handed in counts as 0 points: ann ({PART})\n" in capsys.readouterr().out


def test_a_second_notebook_that_comes_later_joins_the_first(two_parts: Class, roster: Path) -> None:
    course = two_parts.course
    path = two_parts.hand_in("ann")
    grade(course, two_parts.folder)
    give(course, "ann", 2.0)
    path.rename(path.with_name(f"{PART}.ipynb"))
    grade(course, two_parts.folder)
    row = rows(course)["ann"]
    assert (row["total"], row["state"]) == ("24.0", "1 answer waits")
    give(course, "ann", 1.0, notebook=PART)
    grade(course)
    row = rows(course)["ann"]
    assert (row["total"], row["state"], row["by_hand"]) == ("25.0", "final", "3.0")


def test_a_changed_written_answer_waits_again_and_an_unchanged_one_does_not(
    school: Class, roster: Path
) -> None:
    course = school.course
    school.hand_in("ann")
    grade(course, school.folder)
    give(course, "ann", 2.0)
    school.hand_in("ann", {"copy": "x = 1"})
    grade(course, school.folder)
    assert rows(course)["ann"]["state"] == "final"
    school.hand_in("ann", {"copy": "x = 1", "why": "Something else."})
    grade(course, school.folder, "--export", "canvas")
    assert rows(course)["ann"]["state"] == "1 answer waits" and exported(course)["ann"] == ""
    grade(course, school.folder)
    assert rows(course)["ann"]["state"] == "1 answer waits"  # running again decides nothing
    give(course, "ann", 0.5)
    grade(course, school.folder)
    assert (rows(course)["ann"]["state"], rows(course)["ann"]["total"]) == ("final", "11.5")


def test_points_that_a_person_gave_for_code_wait_again_when_the_code_changes(
    school: Class, roster: Path
) -> None:
    course = school.course
    school.hand_in("ann", {"why": ""})
    grade(course, school.folder)
    give(course, "ann", 0.0)
    give(course, "ann", 1.0, "copy-check")
    grade(course, school.folder)
    assert (rows(course)["ann"]["state"], rows(course)["ann"]["total"]) == ("final", "8.0")
    school.hand_in("ann", {"copy": "x = 1", "why": ""})
    grade(course, school.folder)
    assert rows(course)["ann"]["state"] == "1 answer waits"


def test_the_export_names_whose_grade_is_not_final(
    school: Class, roster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    school.hand_in("ann")
    school.hand_in_stub("bob")
    grade(school.course, school.folder, "--export", "canvas")
    said = capsys.readouterr().out
    assert "1 is not final, so its cell is empty: ann (1 answer waits)" in said
    assert f"{LAB} has 4 students: 1 final, 1 with answers that wait, 2 missing" in said
    assert exported(school.course)["bob"] == "11.00"
    grade(school.course, school.folder, "--export", "canvas", "--provisional")
    assert "1 is not final, but included: ann (1 answer waits)" in capsys.readouterr().out
    assert exported(school.course)["ann"] == "11.00"


def test_moodle_without_participant_numbers_is_said_and_no_empty_file_is_written(
    school: Class, roster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    school.hand_in("ann")
    assert grade(school.course, school.folder, "--export", "moodle") == 1
    assert "nobody has a participant number. Download the grading worksheet" in capsys.readouterr().out
    assert not (school.course.home / f"grades-{LAB}-moodle.csv").exists()
    assert rows(school.course)["ann"]["points"] == "11.0"


def test_formgrader_learns_the_names_and_keeps_them(school: Class, roster: Path) -> None:
    school.hand_in("ann")
    school.hand_in("cy")
    grade(school.course, school.folder)
    roster.unlink()
    grade(school.course, school.folder)
    with Gradebook(school.course.db_url) as book:
        ann, cy = book.find_student("ann"), book.find_student("cy")
        assert (ann.last_name, ann.first_name, ann.lms_user_id) == ("Doe", "Ann", "1")
        assert (cy.last_name, cy.first_name) == ("cy", "")  # formgrader shows None, None for nobody
    assert (rows(school.course)["ann"]["name"], rows(school.course)["cy"]["name"]) == ("Ann Doe", "")


def test_without_a_folder_those_who_handed_in_another_lab_are_not_in_this_one(
    school: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    course = school.course
    shutil.copytree(course.solutions / LAB, course.solutions / "91_other")
    other = course.submitted / "bob" / "91_other"
    other.mkdir(parents=True)
    (other / "91_other.ipynb").write_text("{}")
    school.folder = course.submitted
    school.hand_in("ann")
    assert grade(course) == 0
    assert set(rows(course)) == {"ann"} and "bob" not in capsys.readouterr().out


def test_a_hand_in_that_takes_the_place_of_another_is_said(
    school: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    school.hand_in("ann")
    grade(school.course, school.folder)
    assert "took the place" not in capsys.readouterr().out
    school.hand_in("ann", {"copy": "x = 1"})
    grade(school.course, school.folder)
    said = " ".join(capsys.readouterr().out.split())
    assert "a file took the place of an earlier one, which counts again if you grade it alone: ann" in said


def test_a_roster_given_once_holds_for_later_runs_of_that_lab(
    school: Class, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course, given = school.course, tmp_path / "worksheet.csv"
    given.write_text("id,canvas,name,section\nann,1,Ann Doe,A\ncy,4,Cy Poe,B\n")
    school.hand_in("ann")
    assert grade(course, school.folder, "--roster", given) == 0
    assert grade(course, "--export", "canvas") == 0
    assert {who: row["state"] for who, row in rows(course).items()} == {
        "ann": "1 answer waits", "cy": "missing",
    }  # fmt: skip
    with (course.home / f"grades-{LAB}-canvas.csv").open() as file:
        assert [row["Section"] for row in csv.DictReader(file)] == ["", "A", "B"]
    given.unlink()
    capsys.readouterr()
    assert grade(course) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert f"{LAB} was graded with the roster {given}, which is gone: give it, or a newer one" in said


RULE = f"""
timezone = "UTC"
[due]
{LAB} = 2027-01-15T12:00:00
[extra.{LAB}]
adda = 2027-01-18T12:00:00
[late]
per_day = 10
"""


def test_a_hand_in_without_a_time_is_named_where_being_late_costs_points(
    school: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    school.course.home.mkdir(exist_ok=True)
    school.course.settings.write_text(RULE)
    school.hand_in("ada")
    stamped = school.hand_in("bob").with_name("timestamp.txt")
    stamped.write_text("2027-01-14 12:00:00 UTC")
    assert grade(school.course, school.folder) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "no time of handing in is known of ada, so they count as on time. Write the times" in said


def test_whatever_about_time_does_not_count_is_said(
    school: Class, roster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course = school.course
    course.settings.write_text(RULE)
    roster.write_text(
        "id,canvas,handed_in\nann,1,\nbob,2,17.01.2027 22:10\nlate,3,2027-01-16 10:00\nada,4,\n"
    )
    school.folder.mkdir()
    for name in ("ann_LATE_1_90", "bob_LATE_2_91", "lena_LATE_3_92"):
        shutil.copy(school.hand_in("x"), school.folder / f"{name}_{LAB}.ipynb")
    shutil.rmtree(school.folder / "x")
    assert grade(course, school.folder) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "as LATE, but not since when, so their grades are not final: ann. Write the times" in said
    assert "so the grades are not final: bob '17.01.2027 22:10'. Write them as 2027-01-17 22:10" in said
    assert "no time of handing in is known" not in said  # Canvas says who is late
    assert f"so nobody gets what [extra.{LAB}] gives it: adda (ada?). Correct it in course.toml" in said
    assert {who: row["late"] for who, row in rows(course).items()} == {
        "ada": "", "ann": "0.0", "bob": "0.0", "late": "-1.1",
    }  # fmt: skip
    assert grade(course) == 0  # what Canvas said is not forgotten
    assert "Canvas marks these as LATE" in " ".join(capsys.readouterr().out.split())
    course.settings.write_text(
        RULE.replace(f"[due]\n{LAB} = 2027-01-15T12:00:00\n[extra.{LAB}]\nadda = 2027-01-18T12:00:00", "")
    )
    assert grade(course) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"has a rule for late submissions, but no due date for {LAB} in [due]" in said
    assert {row["late"] for row in rows(course).values()} == {"", "0.0"}


def late_of_canvas(school: Class, number: int, late: str = "LATE_", **answers: str) -> Path:
    """A folder in which Canvas put ann's file."""
    folder = school.folder.parent / f"canvas_{number}"
    folder.mkdir()
    shutil.copy(school.hand_in("x", answers), folder / f"ann_{late}1_{number}_{LAB}.ipynb")
    shutil.rmtree(school.folder)
    return folder


def test_late_by_an_unknown_time_is_not_final_until_a_person_says_what_it_costs(
    school: Class, roster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course, without_time = school.course, roster.read_text()
    course.settings.write_text(RULE)
    assert grade(course, late_of_canvas(school, 90), "--export", "canvas") == 0
    assert rows(course)["ann"]["state"] == "1 answer waits"
    give(course, "ann", 2.0)
    capsys.readouterr()
    assert grade(course, "--export", "canvas", "--feedback", "mail") == 0
    said = capsys.readouterr().out
    row, words = rows(course)["ann"], "late, by how much is not known"
    assert (row["state"], row["why"], row["late"]) == (words, words, "0.0")
    assert exported(course)["ann"] == "" and not (course.home / f"feedback-{LAB}-mail").exists()
    assert f"{LAB} has 4 students: 1 whose lateness is not known, 3 missing" in said
    assert "1. nobody knows how late 1 hand-in came (ann): write the times into a column" in said
    assert "2. 1 grade is not final; afterwards" in said
    roster.write_text("id,canvas,handed_in\nann,1,2027-01-16 10:00\n")
    assert grade(course, "--export", "canvas") == 0
    assert (rows(course)["ann"]["state"], exported(course)["ann"]) == ("final", "11.70")
    # A new file comes late, again without a time: that of the earlier one is not its own.
    roster.write_text(without_time)
    assert grade(course, late_of_canvas(school, 91, copy="x = 1"), "--export", "canvas") == 0
    assert (rows(course)["ann"]["state"], rows(course)["ann"]["late"]) == (words, "0.0")
    assert exported(course)["ann"] == ""
    capsys.readouterr()
    waived = f'{RULE}[waive.{LAB}]\nann = "hospital"\n'
    for rule, why in ((waived, "waived: hospital"), (RULE.partition("[late]")[0], "")):
        course.settings.write_text(rule)
        assert grade(course, "--export", "canvas") == 0
        assert (rows(course)["ann"]["state"], exported(course)["ann"]) == ("final", "13.00")
        assert rows(course)["ann"]["why"] == why and "as LATE" not in capsys.readouterr().out


def test_a_time_that_is_corrected_in_the_roster_counts_in_the_next_run(
    school: Class, roster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course = school.course
    course.settings.write_text(RULE)
    roster.write_text("id,canvas,handed_in\nann,1,2027-01-16 10:00\n")
    assert grade(course, late_of_canvas(school, 90), "--export", "canvas") == 0
    give(course, "ann", 2.0)
    assert grade(course, "--export", "canvas") == 0
    assert (rows(course)["ann"]["state"], exported(course)["ann"]) == ("final", "11.70")
    roster.write_text("id,canvas,handed_in\nann,1,2027-01-17 10:00\n")
    assert grade(course, "--export", "canvas") == 0
    assert (rows(course)["ann"]["state"], exported(course)["ann"]) == ("final", "10.40")
    roster.write_text("id,canvas\nann,1\n")  # the column is gone, and what is known stays known
    assert grade(course, "--export", "canvas") == 0
    assert exported(course)["ann"] == "10.40"


def test_a_time_that_cannot_be_read_is_not_final_where_being_late_costs_points(
    school: Class, roster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course = school.course
    course.settings.write_text(RULE)
    roster.write_text("id,handed_in\nann,17.01.2027 22:10\n")
    school.hand_in_stub("ann")
    assert grade(course, school.folder, "--export", "canvas") == 0
    assert (rows(course)["ann"]["state"], exported(course)["ann"]) == (
        "time of handing in cannot be read",
        "",
    )
    said = " ".join(capsys.readouterr().out.split())
    assert "1. the roster's time of 1 hand-in cannot be read (ann): write it there as 2027-01-17" in said
    roster.write_text("id,handed_in\nann,2027-01-17 22:10\n")
    assert grade(course, "--export", "canvas") == 0
    assert (rows(course)["ann"]["state"], exported(course)["ann"]) == ("final", "7.70")


def test_times_in_a_misspelt_column_are_not_passed_over_in_silence(
    school: Class, roster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roster.write_text("id,handed_in_9,handed_in_90\nann,2027-01-17 22:10,\n")
    school.hand_in("ann")
    assert grade(school.course, school.folder) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "roster.csv has a column that is read for no lab: 'handed_in_9' (did you mean handed_in_90?)" in said
    )


def test_a_file_in_no_times_name_is_named_although_canvas_sent_an_earlier_one(
    school: Class, roster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course = school.course
    course.settings.write_text(RULE)
    assert grade(course, late_of_canvas(school, 90, "")) == 0
    assert "no time of handing in is known" not in capsys.readouterr().out
    school.hand_in("ann", {"copy": "x = 1"})  # a newer one, by mail
    assert grade(course, school.folder) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "no time of handing in is known of ann, so they count as on time" in said


def test_an_extension_for_a_student_of_another_roster_or_lab_is_no_mistake(
    school: Class, roster: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course, other = school.course, "91_other"
    for place in (course.solutions, course.labs):
        shutil.copytree(place / LAB, place / other)
    (tmp_path / "other.csv").write_text("id\nzoe\n")
    course.rosters.write_text(json.dumps({other: str(tmp_path / "other.csv")}))
    more = "[[extension.zoe]]\ndays = 1\n[[extension.kim]]\ndays = 1\nlabs = ['91_other']\n"
    course.settings.write_text(RULE.replace("adda", "ann") + more)
    school.hand_in("ann")
    assert grade(course, school.folder) == 0
    assert "nobody has this id" not in " ".join(capsys.readouterr().out.split())
