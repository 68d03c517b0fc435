"""What came before counts: an earlier file where the newer one is broken, and hand-ins that a gradebook lost."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest

from grading.__main__ import main
from grading.core.commands import ours
from grading.core.course import Course
from grading.core.errors import GradingError
from grading.lms import newer
from tests.grading.conftest import LAB, Class
from tests.grading.test_bad_input import FakeJudge, no_sandbox_needed
from tests.grading.test_deliveries import zipped
from tests.grading.test_final import PART, RULE, exported, give, grade, roster, rows, two_parts

__all__ = ["no_sandbox_needed", "roster", "two_parts"]  # fixtures that tests here use

Said = pytest.CaptureFixture[str]
BROKEN = "a newer file cannot be read"


def told(capsys: Said) -> str:
    return " ".join(capsys.readouterr().out.split())


def states(course: Course) -> dict[str, str]:
    return {who: row["state"] for who, row in rows(course).items()}


def test_a_broken_upload_leaves_the_earlier_one_in_place_until_a_person_decides(
    school: Class, roster: Path, capsys: Said
) -> None:
    course = school.course
    good = school.hand_in("ann").read_bytes()
    school.hand_in("bob")
    grade(course, school.folder)
    give(course, "ann", 2.0)
    school.hand_in("ann").write_text("{")
    capsys.readouterr()
    assert grade(course, school.folder, "--export", "canvas") == 0
    row, said = rows(course)["ann"], told(capsys)
    assert (row["state"], row["reason"]) == (BROKEN, "notebook is not JSON (line 1)")
    assert row["total"] == "13.0" and exported(course)["ann"] == ""
    assert (course.submitted / "ann" / LAB / f"{LAB}.ipynb").read_bytes() == good
    assert "1 with a newer file that cannot be read" in said and "took the place" not in said
    assert "so the earlier one counts (ann: notebook is not JSON (line 1)): ask for another file" in said
    command = ours("grade", LAB, "--keep ann")
    assert f"or decide that the earlier one counts, {command}" in said
    assert grade(course) == 0 and states(course)["ann"] == BROKEN  # running again decides nothing
    assert grade(course, "--keep", "ann", "--export", "canvas") == 0
    assert (states(course)["ann"], exported(course)["ann"]) == ("final", "13.00")
    grade(course, school.folder)  # the same broken file once more: it is decided
    assert states(course)["ann"] == "final"
    school.hand_in("ann").write_text("[")
    grade(course, school.folder)  # and another one is not
    assert states(course)["ann"] == BROKEN
    school.hand_in("ann", {"copy": "x = 1"})
    grade(course, school.folder)
    assert states(course)["ann"] == "final"
    assert "x = 1" in (course.submitted / "ann" / LAB / f"{LAB}.ipynb").read_text()


def test_to_keep_what_was_not_set_aside_is_refused(school: Class, roster: Path, capsys: Said) -> None:
    course = school.course
    school.hand_in("ann")
    grade(course, school.folder)
    school.hand_in("ann").write_text("{")
    grade(course, school.folder)
    capsys.readouterr()
    assert grade(course, "--keep", "anne") == 1
    with pytest.raises(GradingError) as caught:
        newer.keep(course, LAB, ["bob"])
    assert "--keep anne (did you mean ann?): no newer file of this student" in told(capsys)
    assert "Such files are there of ann" in " ".join(str(caught.value).split())


def test_a_broken_file_brings_neither_its_time_nor_its_name(school: Class, roster: Path) -> None:
    course = school.course
    course.settings.write_text(RULE)
    roster.write_text("id,canvas,handed_in\nann,1,2027-01-14 10:00\n")
    grade(course, late_file(school, 90, "", json.dumps(school.notebook())))
    give(course, "ann", 2.0)
    roster.write_text("id,canvas,handed_in\nann,1,2027-01-17 10:00\n")  # as an LMS that knows the last file
    grade(course, late_file(school, 91, "LATE_", "{"))
    for _ in range(2):
        assert (states(course)["ann"], rows(course)["ann"]["late"]) == (BROKEN, "0.0")
        grade(course)
    assert grade(course, "--keep", "ann", "--feedback", "canvas") == 0
    assert (states(course)["ann"], rows(course)["ann"]["total"]) == ("final", "13.0")
    grade(course)
    assert rows(course)["ann"]["total"] == "13.0"


def test_a_broken_file_from_canvas_makes_nobody_ask_for_the_time_of_the_one_that_counts(
    school: Class, roster: Path, capsys: Said
) -> None:
    course = school.course
    course.settings.write_text(RULE)
    roster.write_text("id,canvas\nann,1\n")
    grade(course, late_file(school, 90, "", json.dumps(school.notebook())))
    assert "no time of handing in" not in told(capsys)  # Canvas would have marked it
    grade(course, late_file(school, 91, "", "{"))
    said = told(capsys)
    assert BROKEN in said and "no time of handing in" not in said


def late_file(school: Class, number: int, late: str, content: str) -> Path:
    folder = school.folder.parent / f"canvas_{number}"
    folder.mkdir()
    (folder / f"ann_{late}1_{number}_{LAB}.ipynb").write_text(content)
    return folder


def test_one_broken_notebook_of_two_keeps_its_earlier_file_and_the_other_is_taken(
    two_parts: Class, roster: Path
) -> None:
    course = two_parts.course
    first = two_parts.hand_in("ann")
    shutil.copy(first, first.with_name(f"{PART}.ipynb"))
    grade(course, two_parts.folder)
    two_parts.hand_in("ann", {"copy": "x = 1"})
    first.with_name(f"{PART}.ipynb").write_text("{")
    grade(course, two_parts.folder)
    here = course.submitted / "ann" / LAB
    assert "x = 1" in (here / f"{LAB}.ipynb").read_text() and (here / f"{PART}.ipynb").read_text() != "{"
    assert rows(course)["ann"]["points"] == "22.0"


def test_notes_of_broken_files_are_forgotten_with_the_rest(school: Class, roster: Path) -> None:
    course = school.course
    school.hand_in("ann")
    grade(course, school.folder)
    school.hand_in("ann").write_text("{")
    grade(course, school.folder)
    assert list(course.unread.rglob("ann@*"))
    assert main(["forget", "--before", "2100-01-01", "--yes"], course) == 0
    assert not list(course.unread.rglob("ann@*"))


def test_a_gradebook_that_is_put_aside_comes_back_with_everybody_as_they_were(
    school: Class, roster: Path, tmp_path: Path, capsys: Said
) -> None:
    course = school.course
    school.hand_in("ann")
    delivery = zipped(
        tmp_path / "all.zip",
        {
            f"doeann_1_900_{LAB}.ipynb": school.path("ann").read_bytes(),
            f"roebob_2_901_{LAB}.ipynb": b"{",
            f"latelena_3_902_{LAB}.html": b"<html>",
        },
    )
    grade(course, delivery)
    before = rows(course)
    assert [before[who]["state"] for who in ("bob", "late", "cy")] == ["ungraded", "ungraded", "missing"]
    for arguments in ((), (alone_in_a_folder(school, "cy"),)):
        course.gradebook.unlink()
        FakeJudge.asked.clear()
        capsys.readouterr()
        assert grade(course, *arguments) == 0
        after = rows(course)
        assert after["late"] == before["late"] and "found: 90_class.html" in after["late"]["reason"]
        assert after["bob"] == before["bob"] and after["ann"] == before["ann"]
    said = told(capsys)
    assert "the gradebook had nothing of ann, bob, late, who handed in before this run" in said
    assert len(FakeJudge.asked) == 1  # cy's, of whom nothing was known
    assert grade(course) == 0
    assert "the gradebook had nothing" not in told(capsys)


def alone_in_a_folder(school: Class, who: str) -> Path:
    folder = school.folder.parent / "later"
    shutil.copytree(school.hand_in(who, {"why": "Later."}).parents[1], folder / who)
    return folder


def test_another_lab_that_the_gradebook_lost_is_named_with_its_command(school: Class, capsys: Said) -> None:
    course, other = school.course, "91_other"
    for place in (course.solutions, course.labs):
        shutil.copytree(place / LAB, place / other)
    school.hand_in("ann")
    grade(course, school.folder)
    course.gradebook.unlink()
    (school.folder / "ann" / LAB).rename(school.folder / "ann" / other)
    assert main(["grade", other, str(school.folder)], course) == 0
    assert f"the gradebook has nothing of {LAB}, which was graded before: {ours('grade', LAB)}" in told(
        capsys
    )
    assert grade(course) == 0
    assert "which was graded before" not in told(capsys)


def test_a_hand_in_without_a_notebook_is_late_too_when_a_person_gives_it_points(
    school: Class, roster: Path, capsys: Said
) -> None:
    course, folder = school.course, school.folder
    course.settings.write_text(RULE)
    roster.write_text("id,canvas,handed_in\nann,1,2027-01-16 10:00\n")
    folder.mkdir()
    (folder / f"doeann_1_90_{LAB}.html").write_text("<html>")
    assert grade(course, folder) == 0
    reason = rows(course)["ann"]["reason"]
    for cell in ("copy-check", "sectors-check", "transpose-check", "why"):
        give(course, "ann", 2.0, cell)
    for _ in range(2):
        assert grade(course) == 0
        row = rows(course)["ann"]
        assert (row["state"], row["points"], row["late"], row["total"]) == ("final", "8.0", "-0.8", "7.2")
    assert f"ungraded ann {reason}" in told(capsys)  # as it was said at first, with the file's name


def test_a_run_over_others_takes_a_new_time_in_the_roster_too(school: Class, roster: Path) -> None:
    course = school.course
    course.settings.write_text(RULE)
    roster.write_text("id,handed_in\nann,2027-01-16 10:00\nbob,2027-01-14 10:00\n")
    school.hand_in("ann")
    school.hand_in("bob")
    grade(course, school.folder)
    assert {who: row["late"] for who, row in rows(course).items()} == {"ann": "-1.1", "bob": "0.0"}
    roster.write_text("id,handed_in\nann,2027-01-14 10:00\nbob,2027-01-17 10:00\n")
    shutil.rmtree(school.folder / "ann")
    grade(course, school.folder)
    assert {who: row["late"] for who, row in rows(course).items()} == {"ann": "0.0", "bob": "-2.2"}


def test_times_of_one_lab_are_no_times_of_another(school: Class, roster: Path, capsys: Said) -> None:
    course, other = school.course, "91_other"
    for place in (course.solutions, course.labs):
        shutil.copytree(place / LAB, place / other)
    rule = RULE.replace("[extra", f"{other} = 2027-01-22T12:00:00\n[extra")
    course.settings.write_text(rule)
    roster.write_text("id,canvas,handed_in\nann,1,2027-01-16 10:00\n")
    grade(course, late_file(school, 90, "LATE_", json.dumps(school.notebook())))
    late = late_file(school, 91, "LATE_", json.dumps(school.notebook()))
    assert main(["grade", other, str(late)], course) == 0
    said = told(capsys)
    assert f"roster.csv is the roster of {other}, {LAB}, and does not say of which lab its times" in said
    assert "as LATE, but not since when, so their grades are not final: ann. Write the times into" in said
    with course.grades.open() as file:
        found = {row["lab"]: (row["state"], row["late"]) for row in csv.DictReader(file)}
    assert found == {LAB: ("1 answer waits", "-1.1"), other: ("1 answer waits", "0.0")}
    roster.write_text("id,canvas,handed_in_90,handed_in_91\nann,1,2027-01-17 10:00,2027-01-23 10:00\n")
    assert main(["grade", other], course) == 0
    assert grade(course) == 0
    said = told(capsys)
    assert "does not say of which lab" not in said and "as LATE" not in said
    with course.grades.open() as file:
        assert {row["lab"]: row["late"] for row in csv.DictReader(file)} == {LAB: "-2.2", other: "-1.1"}


def test_canvas_gets_the_columns_back_that_its_export_has(
    school: Class, tmp_path: Path, capsys: Said
) -> None:
    course, template = school.course, tmp_path / "canvas.csv"
    template.write_text(
        "Student,ID,SIS User ID,SIS Login ID,Root Account,Pronouns,Section,Memory (55),Current Score\n"
        "    Points Possible,,,,,,,13,(read only)\n"
        '"Doe, Ann",11,S-0011,ann,uni.edu,she,A,,\n"Roe, Bob",12,S-0012,bob,uni.edu,,"A and B",,\n'
    )
    school.hand_in_stub("ann")
    options = ("--roster", template, "--title", "Memory (55)", "--export", "canvas")
    assert grade(course, school.folder, *options) == 0
    with (course.home / f"grades-{LAB}-canvas.csv").open(newline="") as file:
        found = list(csv.reader(file))
    assert found == [
        [
            "Student",
            "ID",
            "SIS User ID",
            "SIS Login ID",
            "Root Account",
            "Pronouns",
            "Section",
            "Memory (55)",
        ],
        ["    Points Possible", "", "", "", "", "", "", "13"],
        ["Doe, Ann", "11", "S-0011", "ann", "uni.edu", "she", "A", "11.00"],
        ["Roe, Bob", "12", "S-0012", "bob", "uni.edu", "", "A and B", ""],
    ]


def test_two_notebooks_under_each_others_names_are_graded_by_their_cells_and_named(
    two_parts: Class, roster: Path, capsys: Said
) -> None:
    course = two_parts.course
    place = course.labs / LAB
    part = json.loads((place / f"{PART}.ipynb").read_text())
    for cell in part["cells"]:  # two notebooks that are known by their cells
        if mark := cell["metadata"].get("nbgrader"):
            mark["grade_id"] = f"b-{mark['grade_id']}"
    (place / f"{PART}.ipynb").write_text(json.dumps(part))
    first = two_parts.hand_in("ann")
    first.with_name(f"{PART}.ipynb").write_bytes(first.read_bytes())
    first.write_text(json.dumps(part))
    two_parts.hand_in("bob")
    grade(course, two_parts.folder)
    said = told(capsys)
    assert (
        "graded by its cells, and not by its name: "
        f"ann ({LAB}.ipynb has the cells of {PART}, {PART}.ipynb has the cells of {LAB})"
    ) in said
    assert "bob (" not in said.partition("graded by its cells")[2].partition("note:")[0]
