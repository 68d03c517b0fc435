"""Feedback goes back to the student whose it is, in the form that Moodle, Canvas or a mail program takes."""

from __future__ import annotations

import email
import email.policy
import json
import re
import shutil
import zipfile
from datetime import datetime
from email.message import EmailMessage
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from grading.core.course import Course
from grading.lms import retention
from tests.grading.conftest import LAB, Class, cell_of
from tests.grading.test_bad_input import no_sandbox_needed
from tests.grading.test_deliveries import zipped
from tests.grading.test_final import exported, give, grade, rows

__all__ = ["no_sandbox_needed"]  # a fixture that every test here uses

PAGE = f"{LAB}.html"


def moodle_takes(archive: Path, participants: set[int]) -> dict[int, dict[str, str]]:
    """What Moodle's importziplib.php does with a zip: pages by participant's number, as texts."""
    found: dict[int, dict[str, str]] = {}
    with zipfile.ZipFile(archive) as file:
        for name in file.namelist():
            folder, _, page = name.partition("/")
            parts = folder.split("_", 4)
            if page.startswith((".", "~")) or len(parts) < 5 or not parts[1].isdecimal():
                continue
            if int(parts[1]) in participants and parts[2:4] == ["assignsubmission", "file"]:
                found.setdefault(int(parts[1]), {})[page] = file.read(name).decode()
    return found


def canvas_takes(archive: Path, handed_in: dict[str, str]) -> dict[str, str]:
    """What Canvas does with a zip: pages by user's number. `handed_in` has each user's number of a file."""
    found = {}
    with zipfile.ZipFile(archive) as file:
        for name in file.namelist():
            user, attached, *_ = [part for part in name.split("_") if re.fullmatch(r"\d+", part)] + ["", ""]
            if handed_in.get(user) == attached:
                found[user] = file.read(name).decode()
    return found


def letters(course: Course) -> dict[str, EmailMessage]:
    return {
        path.stem: email.message_from_bytes(
            path.read_bytes(), _class=EmailMessage, policy=email.policy.default
        )
        for path in (course.home / f"feedback-{LAB}-mail").iterdir()
    }


def text_of(message: EmailMessage) -> str:
    body = message.get_body(("plain",))
    assert body is not None
    return str(body.get_content())


def unanswered(school: Class) -> dict[str, str]:
    """The written answer as it was released, which waits for nobody."""
    return {"why": cell_of(school.released, "why").source}


@pytest.fixture
def moodle(school: Class, tmp_path: Path) -> Path:
    """Three students in Moodle's download; the class's roster knows names and no numbers."""
    course = school.course
    course.home.mkdir(exist_ok=True)
    course.roster.write_text('id,name,email\nann,"Doe, Ann",ann@b.org\nbob,Bob Roe,\ncy,Cy Poe,cy@b.org\n')
    wrong = {"sectors": "def sectors(addresses, size):\n    return 0"}
    nothing = unanswered(school)
    members = {
        f"Ann Doe_11_assignsubmission_file_/{LAB}.ipynb": school.notebook(),
        f"Bob Roe_12_assignsubmission_file/{LAB}.ipynb": school.notebook({**wrong, **nothing}),
    }
    return zipped(tmp_path / "all.zip", {name: json.dumps(nb).encode() for name, nb in members.items()})


def test_moodle_gets_each_page_into_the_folder_of_its_student(
    school: Class, moodle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course = school.course
    assert grade(course, moodle, "--feedback", "moodle") == 0
    archive = course.home / f"feedback-{LAB}-moodle.zip"
    assert archive.stat().st_mode & 0o077 == 0  # grades are no other user's business
    assert set(moodle_takes(archive, {11, 12})) == {12}  # Ann's written answer waits for a person
    said = " ".join(capsys.readouterr().out.split())
    assert "1 is not final, and gets no feedback yet: ann (1 answer waits)" in said
    give(course, "ann", 1.5)
    assert grade(course, "--feedback", "moodle", "--export", "moodle") == 0  # without the zip
    taken = moodle_takes(archive, {11, 12})
    assert set(taken) == {11, 12} and set(taken[11]) == {PAGE}
    assert "(Score: 12.5 / 13.0)" in taken[11][PAGE] and "(Score: 11.0 / 13.0)" in taken[12][PAGE]
    exported = (course.home / f"grades-{LAB}-moodle.csv").read_text()
    assert "Participant 11," in exported and "Participant 12," in exported


def test_the_number_in_the_download_counts_and_not_that_of_an_old_worksheet(
    school: Class, moodle: Path
) -> None:
    course = school.course
    course.roster.write_text("id,name,moodle\nann,Ann Doe,99\nbob,Bob Roe,98\n")
    grade(course, moodle, "--feedback", "moodle", "--provisional")
    taken = moodle_takes(course.home / f"feedback-{LAB}-moodle.zip", {11, 12, 98, 99})
    assert set(taken) == {11, 12}


def test_canvas_gets_pages_under_the_names_that_it_gave_the_files(school: Class, tmp_path: Path) -> None:
    course = school.course
    course.home.mkdir(exist_ok=True)
    course.roster.write_text('id,name\nann,"Doe, Ann"\nbob,"Roe, Bob"\n')
    members = {
        f"doeann_LATE_4711_900_{LAB}.ipynb": school.notebook(unanswered(school)),
        f"roebob_4712_901_{LAB}-2.ipynb": school.notebook(unanswered(school)),
    }
    delivery = zipped(tmp_path / "all.zip", {n: json.dumps(nb).encode() for n, nb in members.items()})
    assert grade(course, delivery, "--export", "canvas", "--feedback", "canvas") == 0
    taken = canvas_takes(course.home / f"feedback-{LAB}-canvas.zip", {"4711": "900", "4712": "901"})
    assert set(taken) == {"4711", "4712"} and "(Score: 11.0 / 13.0)" in taken["4711"]
    assert "4711" in (course.home / f"grades-{LAB}-canvas.csv").read_text()
    assert exported(course) == {"ann": "11.00", "bob": "11.00"}


def test_a_letter_has_the_points_of_each_exercise_and_the_page(school: Class, moodle: Path) -> None:
    course = school.course
    grade(course, moodle, "--feedback", "mail", "--provisional")
    (letter,) = letters(course).values()  # Bob has no address
    assert letter["To"] == '"Doe, Ann" <ann@b.org>' and letter["X-Unsent"] == "1"
    assert letter["Subject"] == f"{LAB}: 11 of 13 points"
    words = " ".join(text_of(letter).split())
    assert "memory.copy 4 of 4" in words and "why 0 of 2 a person has still to look at it" in words
    assert "This is not final." in words
    (page,) = letter.iter_attachments()
    assert page.get_filename() == PAGE and "Score: 11.0" in page.get_content()
    give(course, "ann", 2.0)
    grade(course, "--feedback", "mail")
    words = text_of(letters(course)["ann"])
    assert "Together: 13 of 13 points." in words and "not final" not in words


def test_names_and_addresses_cannot_write_headers_or_folders(
    school: Class, moodle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course = school.course
    course.roster.write_text(
        'id,name,email,moodle\nann,"../Ann_99_\nBcc: eve@b.org",ann@b.org,11\nbob,Bob Roe,bob\nBcc: eve@b.org,12\n'.replace(
            "bob\nBcc", "bob at b.org Bcc"
        )
    )
    assert grade(course, moodle, "--feedback", "mail", "--feedback", "moodle", "--provisional") == 0
    letter = letters(course)["ann"]
    assert letter["Bcc"] is None and set(letters(course)) == {"ann"}
    assert "1 has no e-mail address, and gets no feedback: bob" in capsys.readouterr().out
    taken = moodle_takes(course.home / f"feedback-{LAB}-moodle.zip", {11, 12, 99})
    assert set(taken) == {11, 12}


@pytest.mark.parametrize(
    ("way", "advice"),
    [
        ("moodle", '"Download all submissions" makes'),
        ("canvas", '"Download submissions" makes'),
        ("mail", "Give a roster with a column email"),
    ],
)
def test_where_nobody_can_be_reached_it_says_what_to_do_and_writes_no_file(
    school: Class, capsys: pytest.CaptureFixture[str], way: str, advice: str
) -> None:
    school.hand_in("ann", unanswered(school))
    assert grade(school.course, school.folder, "--feedback", way) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert f"no feedback for {way} was written, because 1 " in said and advice in said
    assert not list(school.course.home.glob("feedback-*"))
    assert rows(school.course)["ann"]["state"] == "final"


def test_a_file_that_cannot_be_written_keeps_no_other_back(
    school: Class, moodle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ways = ("--feedback", "canvas", "--feedback", "moodle", "--export", "canvas")
    assert grade(school.course, moodle, *ways) == 1
    said = capsys.readouterr().out
    assert "no feedback for canvas was written" in said and "left to do:" in said
    assert (school.course.home / f"feedback-{LAB}-moodle.zip").exists()
    assert (school.course.home / f"grades-{LAB}-canvas.csv").exists()


def test_where_no_grade_is_final_yet_no_file_is_left_to_be_uploaded(
    school: Class, moodle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    course = school.course
    grade(course, moodle, "--feedback", "moodle")
    archive = course.home / f"feedback-{LAB}-moodle.zip"
    assert archive.exists()
    course.senders.joinpath(LAB, "bob@.json").unlink()
    shutil.rmtree(course.submitted / "bob")
    with Gradebook(course.db_url) as book:
        book.remove_submission(LAB, "bob")
    assert grade(course, "--feedback", "moodle") == 0
    assert not archive.exists()
    assert "no grade is final yet" in " ".join(capsys.readouterr().out.split())


def test_a_student_cannot_send_feedback_to_somebody_else(school: Class, moodle: Path) -> None:
    """What is packed beside a notebook says nothing of where feedback goes."""
    course = school.course
    grade(course, moodle)
    place = course.submitted / "bob" / LAB
    for name in (".sent_as", "bob@.json"):
        (place / name).write_text('"Ann Doe_11_assignsubmission_file_"')
    grade(course, "--feedback", "moodle", "--provisional")
    pages = moodle_takes(course.home / f"feedback-{LAB}-moodle.zip", {11, 12})
    assert {number: page[PAGE] for number, page in pages.items()} == {
        11: (course.feedback / "ann" / LAB / PAGE).read_text(),
        12: (course.feedback / "bob" / LAB / PAGE).read_text(),
    }


def test_feedback_says_what_a_person_decided_as_soon_as_the_lab_is_graded_again(school: Class) -> None:
    course = school.course
    school.hand_in("ann")
    school.hand_in("bob")
    grade(course, school.folder)
    pages = {who: course.feedback / who / LAB / PAGE for who in ("ann", "bob")}
    before = {who: page.stat().st_mtime_ns for who, page in pages.items()}
    grade(course)
    assert {who: page.stat().st_mtime_ns for who, page in pages.items()} == before
    give(course, "ann", 1.5)
    with Gradebook(course.db_url) as book:
        comment = book.find_comment("why", LAB, LAB, "bob")
        comment.manual_comment = "Think of the banks."
        book.db.commit()
    shutil.rmtree(school.folder)
    grade(course)
    assert "(Score: 12.5 / 13.0)" in pages["ann"].read_text()
    assert "Think of the banks." in pages["bob"].read_text()


def test_one_notebook_of_which_no_page_can_be_made_is_named_and_stops_nobody(
    school: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    course = school.course
    for student in ("ann", "bob"):
        school.hand_in(student)
    other = course.autograded / "ann" / LAB / f"{LAB}.ipynb"
    grade(course, school.folder)
    for student in ("ann", "bob"):
        give(course, student, 2.0)
    shutil.rmtree(school.folder / "ann")  # this run is about Bob alone
    other.write_text("{")
    assert grade(course, school.folder, "--feedback", "mail", "--provisional") == 1  # nobody has an address
    said = " ".join(capsys.readouterr().out.split())
    assert f"note: the feedback of ann in {LAB} is not up to date: nbgrader refused ann:" in said
    assert "(Score: 13.0 / 13.0)" in (course.feedback / "bob" / LAB / PAGE).read_text()
    assert rows(course)["ann"]["total"] == "13.0"


def test_a_file_that_a_student_sends_alone_later_goes_back_under_its_new_name(
    school: Class, tmp_path: Path
) -> None:
    course = school.course
    for number in (900, 955):
        name = f"doeann_4711_{number}_{LAB}.ipynb"
        content = json.dumps(school.notebook({"copy": f"x = {number}", **unanswered(school)})).encode()
        grade(course, zipped(tmp_path / f"{number}.zip", {name: content}), "--feedback", "canvas")
    taken = canvas_takes(course.home / f"feedback-{LAB}-canvas.zip", {"4711": "955"})
    assert set(taken) == {"4711"} and "x = 955" in re.sub(r"<[^>]*>", "", taken["4711"])


def test_packed_feedback_and_numbers_are_forgotten_with_the_rest(school: Class, moodle: Path) -> None:
    course = school.course
    grade(course, moodle, "--feedback", "moodle", "--feedback", "mail", "--provisional")
    assert list(course.senders.rglob("ann@*")) and list(course.home.glob("feedback-*"))
    retention.forget(course, retention.past(course, datetime(2999, 1, 1)))
    assert not list(course.senders.rglob("*@*")) and not list(course.home.glob("feedback-*"))
