"""What an LMS sends: whose it is, that a zip does no harm, and that grades go back in its own columns."""

from __future__ import annotations

import csv
import io
import json
import shutil
import stat
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbgrader.api import Gradebook

from grading.__main__ import main
from grading.core.course import Course
from grading.core.errors import GradingError
from grading.core.notebooks import LARGEST_NOTEBOOK
from grading.lms import archives, exports, final, screen
from grading.lms.roster import Roster, Sender, Student, read_roster
from grading.lms.submissions import find_submissions, sent_as
from tests.grading.conftest import LAB, Class
from tests.grading.test_bad_input import no_sandbox_needed, scores

__all__ = ["no_sandbox_needed"]  # a fixture that every test here uses

NAME = f"{LAB}.ipynb"
CLASS = Roster(
    Path("roster.csv"),
    {
        s.id: s
        for s in (
            Student("ann", "4711", "11", "Ann Doe"),
            Student("bob", "4712", "", "Roe, Bob"),
            Student("cleo", "", "", "Cleo Anne-Marie Poe"),
            Student("twin1", name="Kim Lee"),
            Student("twin2", name="Kim Lee"),
        )
    },
)


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def found(folder: Path, members: dict[str, str], roster: Roster = CLASS) -> dict[str, str]:
    """Student → name of the file that is graded, or the reason why there is none."""
    for name in members:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(members[name])
    submissions = find_submissions(folder, LAB, [LAB], roster)
    return {
        s.student: s.refused.reason
        if s.refused
        else next((p.relative_to(folder).as_posix() for p in s.notebooks.values()), "")
        for s in submissions
    }


def test_files_of_canvas_are_matched_by_number_then_by_a_name_that_only_one_has(tmp_path: Path) -> None:
    names = {
        "ann": f"doeann_LATE_4711_900_{NAME}",
        "bob": f"roebob_4719_901_{NAME}",
        "cleo": f"poecleoannemarie_77_902_{NAME}",
    }
    strangers = [f"leekim_78_903_{NAME}", f"nobody_79_904_{NAME}"]
    answer = found(tmp_path, dict.fromkeys([*names.values(), *strangers], ""))
    assert {s: answer[s] for s in names} == names
    assert "the number 78 in the column 'canvas'" in answer["leekim (Canvas 78)"]
    assert "add it there" in answer["nobody (Canvas 79)"]


def test_the_last_upload_is_graded_and_other_files_are_left_alone(tmp_path: Path) -> None:
    files = [f"doeann_4711_900_{NAME}", f"doeann_4711_905_{LAB}-1.ipynb", "doeann_4711_906_notes.ipynb"]
    assert found(tmp_path, dict.fromkeys(files, "")) == {"ann": files[1]}
    (ann,) = find_submissions(tmp_path, LAB, [LAB], CLASS)
    assert ann.others == (f"{NAME} (there is a later one)", "notes.ipynb")


def test_folders_and_files_of_moodle_are_matched_with_and_without_groups(tmp_path: Path) -> None:
    answer = found(
        tmp_path,
        {
            f"Ann Doe_11_assignsubmission_file_/{NAME}": "",
            f"Group 3-Bob Roe_12_assignsubmission_file_/inside/{LAB} (2).ipynb": "",
            "Cleo Anne-Marie Poe_13_assignsubmission_file_renamed.ipynb": "",
            f"Kim Lee_14_assignsubmission_file/{NAME}": "",
        },
    )
    assert answer["ann"] == f"Ann Doe_11_assignsubmission_file_/{NAME}"
    assert answer["bob"].endswith("(2).ipynb")
    assert answer["cleo"].endswith("renamed.ipynb")  # the only one it can be
    assert "column 'moodle'" in answer["Kim Lee (Moodle 14)"]


def test_without_a_roster_an_lms_number_is_the_student(tmp_path: Path) -> None:
    everybody = Roster()
    files = {f"doeann_4711_900_{NAME}": "", f"anon_Ab1xZ_902_{NAME}": "", "eve.ipynb": ""}
    assert set(found(tmp_path, files, everybody)) == {"4711", "anon_Ab1xZ", "eve"}


def test_an_id_on_the_roster_is_never_taken_for_a_name_of_canvas(tmp_path: Path) -> None:
    roster = Roster(Path("r"), {"x_1_2_y": Student("x_1_2_y")})
    assert found(tmp_path, {"x_1_2_y.ipynb": ""}, roster) == {"x_1_2_y": "x_1_2_y.ipynb"}


def test_a_student_who_is_there_twice_is_graded_once_and_named(tmp_path: Path) -> None:
    answer = found(tmp_path, {f"ann/{NAME}": "", "ann.ipynb": ""})
    assert answer["ann"] == f"ann/{NAME}"
    assert "second submission of ann" in answer["ann again"]


def test_one_folder_around_everything_is_looked_into(tmp_path: Path) -> None:
    assert found(tmp_path, {f"lab/ann/{NAME}": "", f"lab/bob/{LAB}/{NAME}": ""}).keys() == {"ann", "bob"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id,canvas,name\nann,4711,Ann Doe\n", Student("ann", "4711", "", "Ann Doe")),
        ("id,first_name,last_name\nann,Ann,Doe\n", Student("ann", name="Ann Doe")),
        (
            "Student,ID,SIS User ID,SIS Login ID,Section,Lab (9)\n    Points Possible,,,,,10\n"
            '"Doe, Ann",4711,S1,ann,A,\n"Student, Test",9,,x,A,\n',
            Student("ann", "4711", "", "Doe, Ann", section="A"),
        ),
        (
            "\ufeffIdentifier,Full name,ID number,Email address,Status,Grade\n"
            "Participant 11,Ann Doe,ann,a@b.org,,\n",
            Student("ann", "", "11", "Ann Doe", "a@b.org"),
        ),
        ('\ufeffid;canvas;name\nann;4711;"Doe, Ann"\n', Student("ann", "4711", "", "Doe, Ann")),
    ],
)
def test_a_roster_of_ours_of_canvas_and_of_moodle_is_understood(
    tmp_path: Path, text: str, expected: Student
) -> None:
    path = tmp_path / "roster.csv"
    path.write_text(text)
    assert read_roster(path).students == {"ann": expected}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"first,last\nA,B\n", "no column 'id'"),
        (b"id\nann\nann\n", "ids more than once: ann"),
        (b"id,canvas\nann,4711\nbob,4711\n", "numbers of Canvas more than once: 4711"),
        (b"id,moodle\nann,7\nbob,Participant 7\ncleo,\ndan,\n", "numbers of Moodle more than once: 7"),
        (b"id\n\xff\n", "UTF-8"),
    ],
)
def test_a_roster_that_cannot_be_one_says_why(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "roster.csv"
    path.write_bytes(content)
    with pytest.raises(GradingError, match=words):
        read_roster(path)


def test_a_sender_is_found_whichever_way_round_the_name_is() -> None:
    for name in ("roebob", "Bob Roe", "Roe, Bob", "BOB ROE"):
        student = CLASS.find(Sender("99", "canvas", name))
        assert student and student.id == "bob"


def test_nothing_of_a_zip_lands_elsewhere(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "evil.ipynb"
    path = zipped(
        tmp_path / "a.zip",
        {
            "../evil.ipynb": b"1",
            str(outside): b"1",
            "..\\evil.ipynb": b"1",
            "a/../../evil.ipynb": b"1",
            "ann/\x1b[31m.ipynb": b"1",
            "ann/tool.exe": b"1",
            f"ann/{'x' * 300}.ipynb": b"1",
            f"{'d/' * 40}deep.ipynb": b"1",
            "__MACOSX/ann/._x.ipynb": b"1",
            f"ann/{NAME}": b"{}",
        },
    )
    link = zipfile.ZipInfo("ann/link.ipynb")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(link, "/etc/passwd")
    archives.unpack(path, inside)
    found = {p.relative_to(inside).as_posix(): p.read_bytes() for p in inside.rglob("*") if not p.is_dir()}
    assert found == {f"ann/{NAME}": b"{}", "ann/tool.exe": b""}  # of the program, nothing but its name
    assert not outside.exists()


@given(st.lists(st.text(alphabet="./\\a:\0~ \n", max_size=12), max_size=4))
def test_whatever_members_are_called_all_stay_inside(names: list[str]) -> None:
    for name in names:
        member = zipfile.ZipInfo("x")
        member.filename = name + ".ipynb"
        place = archives._place(member)
        assert place is None or (not place.is_absolute() and ".." not in place.parts)


def test_a_bomb_costs_its_student_only(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", {"ann.ipynb": b"{}", "bob.ipynb": bytes(3 * LARGEST_NOTEBOOK)})
    assert path.stat().st_size < 200_000
    archives.unpack(path, tmp_path / "in")
    assert (tmp_path / "in" / "bob.ipynb").stat().st_size == LARGEST_NOTEBOOK + 1
    assert (tmp_path / "in" / "ann.ipynb").read_bytes() == b"{}"


def test_an_archive_of_many_bombs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "LARGEST_ARCHIVE", 1_000_000)
    path = zipped(tmp_path / "a.zip", {f"s{i}.ipynb": bytes(300_000) for i in range(5)})
    with pytest.raises(GradingError, match="is it the right file"):
        archives.unpack(path, tmp_path / "in")


@pytest.fixture
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where students' zips are unpacked."""
    return tmp_path_factory.mktemp("scratch")


def test_a_zip_a_page_a_script_and_several_files_of_students_are_all_accounted_for(
    tmp_path: Path, scratch: Path
) -> None:
    for name, members in {
        "doeann_4711_900_work.zip": {f"my work/{NAME}": b"{}", "my work/.git/x": b"", "notes.txt": b"1"},
        "roebob_4712_901_deep.zip": {"inner.zip": b"PK"},
        "poecleoannemarie_77_902_torn.zip": {},
    }.items():
        zipped(tmp_path / name, members)
    (tmp_path / "poecleoannemarie_77_902_torn.zip").write_bytes(b"PK\x03\x04")
    for name in (f"roebob_4712_905_{LAB}.html", f"roebob_4712_906_{LAB}.py", "README.md", "twin1.html"):
        (tmp_path / name).write_text("")
    (tmp_path / "twin2").mkdir()
    everybody = {s.student: s for s in find_submissions(tmp_path, LAB, [LAB], CLASS, scratch=scratch)}
    assert {who: s.others for who, s in everybody.items()} == {
        "ann": ("notes.txt",),
        "bob": ("inner.zip", f"{LAB}.html", f"{LAB}.py"),
        "cleo": ("torn.zip (cannot be unpacked)",),
        "twin1": ("twin1.html",),
        "twin2": (),
        "README.md": (),
    }
    assert everybody["ann"].notebooks[LAB].read_bytes() == b"{}"
    assert "not a notebook" in everybody["README.md"].refused.reason


def test_a_notebook_under_another_name_is_known_by_its_cells(tmp_path: Path) -> None:
    def cells(*names: str) -> str:
        return json.dumps({"cells": [{"metadata": {"nbgrader": {"grade_id": name}}} for name in names]})

    marks = {"part_a": {"merge", "merge-check"}, "part_b": {"flash", "flash-check"}}
    one, two, neither = cells("merge", "merge-check"), cells("flash"), cells("of another lab")
    handed_in = {
        "ann/part_a.ipynb": two, "ann/part_b.ipynb": one,  # swapped
        "bob/first, really final.ipynb": one, "bob/second.ipynb": two,
        "cleo/draft.ipynb": one, "cleo/final.ipynb": one, "cleo/part_b.ipynb": two,  # which of the two?
        "dan/part_a.ipynb": neither, "dan/part_b.ipynb": two,  # the verdict says what is wrong with it
        "eva/part_a.ipynb": two, "eva/part_b.ipynb": two,
        "finn.ipynb": two,
    }  # fmt: skip
    for name, content in handed_in.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    (tmp_path / "ann" / "linked.ipynb").symlink_to(tmp_path / "finn.ipynb")
    found = find_submissions(tmp_path, "99_parts", list(marks), Roster(), marks=marks)
    assert {s.student: {part: path.name for part, path in s.notebooks.items()} for s in found} == {
        "ann": {"part_a": "part_b.ipynb", "part_b": "part_a.ipynb"},
        "bob": {"part_a": "first, really final.ipynb", "part_b": "second.ipynb"},
        "cleo": {"part_b": "part_b.ipynb"},
        "dan": {"part_a": "part_a.ipynb", "part_b": "part_b.ipynb"},
        "eva": {"part_b": "part_b.ipynb"},
        "finn": {"part_b": "finn.ipynb"},
    }
    others = {s.student: s.others for s in found}
    assert others["cleo"] == ("draft.ipynb (the cells of part_a)", "final.ipynb (the cells of part_a)")
    assert others["eva"] == ("part_a.ipynb (the cells of part_b)",)


def test_a_students_zip_is_unpacked_within_limits_of_its_own(
    tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "OF_A_STUDENT", (3, 1_000_000))
    many, large = {f"{i}.txt": b"" for i in range(4)}, {f"{i}.ipynb": bytes(600_000) for i in range(2)}
    for name, members in {"doeann_4711_900_a.zip": many, "roebob_4712_901_b.zip": large}.items():
        zipped(tmp_path / name, members)
    with zipfile.ZipFile(tmp_path / "twin1.zip", "w", zipfile.ZIP_LZMA) as file:
        file.writestr(NAME, "{}")
    everybody = {s.student: s for s in find_submissions(tmp_path, LAB, [LAB], CLASS, scratch=scratch)}
    assert everybody["ann"].others == ("a.zip (cannot be unpacked)",)
    assert everybody["bob"].others == ("b.zip (cannot be unpacked)",)
    assert everybody["twin1"].notebooks[LAB].read_bytes() == b""


def test_what_students_zipped_is_graded_and_what_is_no_notebook_is_named(
    school: Class, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inner = zipped(tmp_path / "inner.zip", {f"{LAB}/{NAME}": json.dumps(school.notebook()).encode()})
    delivery = zipped(
        tmp_path / "all.zip",
        {
            "doeann_4711_900_work.zip": inner.read_bytes(),
            f"roebob_4712_901_{LAB}.html": b"<html>",
            f"roebob_4712_902_{LAB}.py": b"print()",
        },
    )
    assert grade(school.course, delivery) == 0
    assert scores(school.course) == {"4711": 11, "4712": 0}
    found = f"no notebook {NAME} was handed in; found: {LAB}.html, {LAB}.py"
    assert f"ungraded  4712  {found}" in capsys.readouterr().out


def test_a_damaged_member_costs_its_student_only(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", {"ann.ipynb": b"{}" * 1000, "bob.ipynb": b"{}"})
    content = bytearray(path.read_bytes())
    content[45] ^= 0xFF
    path.write_bytes(content)
    archives.unpack(path, tmp_path / "in")
    assert (tmp_path / "in" / "ann.ipynb").read_bytes() == b""
    assert (tmp_path / "in" / "bob.ipynb").read_bytes() == b"{}"


def grade(course: Course, *arguments: object) -> int:
    return main(["grade", LAB, *map(str, arguments)], course)


def test_a_download_of_canvas_becomes_grades_in_its_own_columns(
    school: Class, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roster = tmp_path / "canvas.csv"
    roster.write_text(
        "Student,ID,SIS User ID,SIS Login ID,Section\n    Points Possible,,,,\n"
        '"Doe, Ann",4711,,ann,A\n"Roe, Bob",4712,,bob,B\n"Poe, Cleo",4713,,cleo,A\n'
    )
    delivery = zipped(
        tmp_path / "submissions.zip",
        {
            f"doeann_LATE_4711_900_{NAME}": json.dumps(school.notebook()).encode(),
            f"roebob_4712_901_{NAME}": b"{",
            f"eve_4799_902_{NAME}": b"{}",
        },
    )
    options = ("--roster", roster, "--title", "Memory (55)", "--provisional")
    assert grade(school.course, delivery, *options) == 0
    assert "--provisional changes nothing without --export or --feedback" in capsys.readouterr().out
    assert grade(school.course, delivery, "--export", "canvas", "--provisional") == 0  # remembers the others
    out = capsys.readouterr().out
    assert "nothing from 1 on the roster: cleo" in out and "4799" in out and "not JSON" in out
    assert scores(school.course) == {"ann": 11, "bob": 0}
    exported = school.course.home / f"grades-{LAB}-canvas.csv"
    rows = list(csv.DictReader(exported.open()))
    assert list(rows[0])[:2] == ["Student", "ID"] and list(rows[0])[-2] == "Section"
    assert rows[0]["Memory (55)"] == "13"
    assert {r["ID"]: r["Memory (55)"] for r in rows[1:]} == {"4711": "11.00", "4712": "0.00", "4713": ""}
    states = {r["student"]: r["state"] for r in csv.DictReader(school.course.grades.open())}
    assert states == {
        "ann": "1 answer waits",
        "bob": "ungraded",
        "cleo": "missing",
        "eve (Canvas 4799)": "unmatched",
    }
    assert "no assignment" not in out
    roster.write_text(roster.read_text().replace("Section\n", "Section,Caches (56),Total\n", 1))
    assert grade(school.course, "--export", "canvas") == 0  # the title is remembered, and the file of nobody
    out = capsys.readouterr().out
    assert "1 file was refused (eve (Canvas 4799))" in out
    states = {r["student"]: r["state"] for r in csv.DictReader(school.course.grades.open())}
    assert states["eve (Canvas 4799)"] == "unmatched"
    assert "Canvas has no assignment 'Memory (55)', so the import would make a new one." in out
    assert "It has 'Caches (56)'\n" in out
    assert list(next(csv.DictReader(exported.open())))[-1] == "Memory (55)"
    roster.write_text(roster.read_text() + '"Sm, Eve",4799,,eve,A\n')
    for files, state in (((), "missing"), ((delivery,), "ungraded")):
        assert grade(school.course, *files) == 0
        states = {r["student"]: r["state"] for r in csv.DictReader(school.course.grades.open())}
        assert states["eve"] == state
        assert ("eve (Canvas 4799)" in states) == (state == "missing")  # until the file is graded


def test_a_download_of_moodle_goes_back_with_the_points_that_a_person_gave(
    school: Class, tmp_path: Path
) -> None:
    roster = tmp_path / "worksheet.csv"
    roster.write_text("Identifier,Full name,Email address,Status,Grade\nParticipant 11,Ann Doe,ann@b.org,,\n")
    delivery = zipped(
        tmp_path / "all.zip",
        {f"Ann Doe_11_assignsubmission_file_/{NAME}": json.dumps(school.notebook()).encode()},
    )
    options = (delivery, "--roster", roster, "--export", "moodle")
    exported = school.course.home / f"grades-{LAB}-moodle.csv"
    for more, points, comment in ((("--provisional",), "11.00", "1 answer waits"), ((), "", "")):
        assert grade(school.course, *options, *more) == 0
        (row,) = csv.DictReader(exported.open())
        assert (row["Grade"], row["Feedback comments"]) == (points, comment)
    with Gradebook(school.course.db_url) as book:
        written = book.find_grade("why", LAB, LAB, "ann@b.org")
        written.manual_score, written.needs_manual_grade = 1.5, False
        book.db.commit()
    assert grade(school.course, *options) == 0
    (row,) = csv.DictReader(exported.open())
    assert row["Identifier"] == "Participant 11" and row["Grade"] == "12.50"
    assert "Last modified (grade)" in row


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["notes.txt"], "neither a folder nor a zip file"),
        (["broken.zip"], "damaged zip file"),
        (["empty.zip"], "no submission in"),
        (["empty.zip", "--roster", "none.csv"], "no roster"),
        (["empty.zip", "--gradebook", "not a url"], "postgresql://user"),
    ],
)
def test_a_wrong_delivery_is_one_line(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("x")
    zipped(Path("empty.zip"), {})
    content = zipped(Path("broken.zip"), {"a.ipynb": b"{}"}).read_bytes()
    Path("broken.zip").write_bytes(content.replace(b"PK\x01\x02", b"PK\x09\x09"))
    assert grade(course, *arguments) == 1
    out = capsys.readouterr().out.strip().splitlines()
    assert len(out) == 1 and words in out[0]


def test_formulas_in_names_do_not_run_in_a_spreadsheet() -> None:
    text = exports.canvas([final.Final(Student("ann", "1", name="=cmd()"), LAB, 2.0)], "Lab")
    assert list(csv.DictReader(io.StringIO(text)))[1]["Student"] == "'=cmd()"


def test_the_distribution_counts_everybody_once_and_full_marks_last() -> None:
    lines = screen.distribution([0, 0, 5, 10, 10, 10], 10, most=5)
    assert [line.split("–")[-1].split()[1:] for line in lines[1:]] == [
        ["██", "2"], ["0"], ["█", "1"], ["0"], ["███", "3"],
    ]  # fmt: skip
    large = screen.distribution([0] * 80 + [10], 10, most=2)
    assert [line.split("–")[-1].split()[1:] for line in large[1:]] == [["█" * 40, "80"], ["█", "1"]]


def test_drawings_that_came_with_the_lab_are_not_listed_for_each_student(
    school: Class, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (school.course.labs / LAB / "drawings").mkdir()
    content = json.dumps(school.notebook()).encode()
    work = zipped(tmp_path / "work.zip", {f"{LAB}/{NAME}": content, f"{LAB}/drawings/one.svg": b"<svg/>"})
    place = "Ann Doe_11_assignsubmission_file_"
    delivery = zipped(
        tmp_path / "all.zip", {f"{place}/work.zip": work.read_bytes(), f"{place}/notes.txt": b""}
    )
    assert grade(school.course, delivery) == 0
    said = capsys.readouterr().out
    assert "beside a notebook of this lab: 11 notes.txt" in said and "one.svg" not in said


def test_the_download_of_another_lab_is_one_line_and_changes_no_grade(
    school: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    course, other = school.course, "91_other"
    (course.labs / other).mkdir()
    text = json.dumps(school.released).replace('"grade_id": "', '"grade_id": "other-')
    (course.labs / other / f"{other}.ipynb").write_text(text)
    for student in ("ann", "bob", *"defghijk"):
        school.path(student).parent.mkdir(parents=True)
        school.path(student).with_name(f"{other}.ipynb").write_text(text)
    (school.folder / "cy.ipynb").write_text(text)
    assert grade(course, school.folder) == 1
    (said,) = capsys.readouterr().out.splitlines()
    assert f"holds 11 hand-ins of {other}, and of {LAB} nothing. Nothing was changed" in said
    assert said.endswith(f"-m grading grade {other} {school.folder}")
    school.hand_in("ann")  # one who mistook the labs
    assert grade(course, school.folder) == 1
    assert f"holds 10 hand-ins of {other}, and of {LAB} 1. Nothing" in capsys.readouterr().out
    assert not course.grades.exists() and not course.unfinished_runs()
    shutil.rmtree(school.folder / "k")  # fewer than ten others are named one by one
    assert grade(course, school.folder) == 0
    said = capsys.readouterr().out
    assert f"bob  no notebook {LAB}.ipynb was handed in; found: {other}.ipynb" in said
    assert f"cy  the file has no solution cell of {LAB}; is it a notebook of another lab?" in said


def test_a_hand_in_without_a_notebook_changes_nothing_of_the_earlier_ones_time_and_number(
    school: Class, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course = school.course
    course.home.mkdir(exist_ok=True)
    course.roster.write_text("id,canvas,name\nann,1,Ann Doe\n")
    rule = f"[due]\n{LAB} = 2027-01-15T12:00:00\n[late]\nper_day = 10\n"
    course.settings.write_text(f'timezone = "UTC"\n{rule}')
    content = json.dumps(school.notebook()).encode()
    assert grade(course, zipped(tmp_path / "a.zip", {f"doeann_1_90_{LAB}.ipynb": content})) == 0
    again = zipped(tmp_path / "b.zip", {"doeann_LATE_1_91_report.pdf": b"%PDF"})
    capsys.readouterr()
    assert grade(course, again) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "not looked at beside a notebook of this lab: ann report.pdf" in said
    assert "as LATE" not in said
    assert sent_as(course, LAB, "ann") == f"doeann_1_90_{LAB}.ipynb"
    assert next(iter(csv.DictReader(course.grades.open())))["state"] == "1 answer waits"
