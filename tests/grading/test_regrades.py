"""A student asks for a regrade: the old verdict stands beside a new one, and nothing else changes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from grading.__main__ import main
from grading.core.commands import ours
from grading.core.course import Course
from grading.core.sandbox import Limits
from grading.core.verdicts import Store
from grading.lms import classroom
from tests.grading.conftest import LAB, Class


def ask(course: Course, name: str, **said: str) -> Path:
    course.regrades.mkdir(parents=True, exist_ok=True)
    path = course.regrades / f"{name}.toml"
    path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in said.items()))
    return path


def queue(course: Course, capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert main(["regrades", "--limit", "60"], course) == code
    return " ".join(capsys.readouterr().out.split())


def test_old_and_new_verdict_stand_side_by_side(
    needs_sandbox: None, school: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    course, why = school.course, "My copy is right \x1b[31m at 31."
    school.folder = course.submitted
    only = {"transpose": "", "sectors": "return_nothing = 1"}
    school.hand_in("ada", only)
    school.hand_in("bob", only)
    classroom.grade(course, LAB, course.submitted, limits=Limits(seconds=60, patience=60))
    store = Store(course.verdicts)
    right = store.get("ada", LAB, LAB)
    assert right is not None and right.points == 4
    # As if a judge of last week had been wrong about ada.
    first = right.exercises[0]
    worse = replace(
        first, lines=(replace(first.lines[0], points=0.0, short="wrong last week"), *first.lines[1:])
    )
    store.put("ada", LAB, LAB, replace(right, exercises=(worse, *right.exercises[1:])))
    ask(course, "first", student="ada", lab=LAB, exercise="memory.copy", why=why)
    ask(course, "second", student="bob", lab=LAB, exercise="memory.copy", why="Look again.")
    ask(course, "third", student="cy", lab=LAB, why="I handed it in.")
    ask(course, "fourth", student="bob", lab="99_none", why="What?")
    ask(course, "fifth", student="bob", lab=LAB, exercise="memory.none", why="What?")
    ask(course, "by_number", student="bob", lab=LAB[:2], exercise="memory.copy", why="By its number.")
    ask(course, "bad").write_text("student = ")
    before = {
        p: p.read_bytes() for p in course.home.rglob("*") if p.is_file() and course.regrades not in p.parents
    }
    out = queue(course, capsys, code=1)  # for the bad file, which keeps no other from its answer
    assert "not judged: " in out and "bad.toml is no TOML" in out and "6 requests" in out
    assert f"bob · {LAB} · memory.copy (by_number.toml)" in out
    assert "ada · 90_class · memory.copy (first.toml) “My copy is right at 31.”" in out
    assert "memory.copy: 2.4 of 4, wrong last week today 4 of 4" in out
    assert "memory.copy: 4 of 4; the same today" in out
    assert (
        "nothing of cy in" in out and "no released lab '99_none'" in out and "does not ask memory.none" in out
    )
    assert f"{ours('grade', LAB)} gives it to everybody" in out
    after = {
        p: p.read_bytes() for p in course.home.rglob("*") if p.is_file() and course.regrades not in p.parents
    }
    assert after == before
    record = json.loads((course.regrades / f"ada@{LAB}@first.json").read_text())
    assert record["verdicts"][0]["old"]["lines"][0]["points"] == 0
    assert record["verdicts"][0]["new"]["lines"][0]["points"] == 1.6


def test_whoever_handed_in_another_lab_alone_is_not_taken_for_a_misspelt_id(
    school: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    course = school.course
    school.folder = course.submitted
    school.hand_in("bob")
    path = school.hand_in("ada")
    path.parent.rename(path.parent.with_name("91_other"))
    ask(course, "first", student="ada", lab=LAB, why="Look again.")
    ask(course, "second", student="adda", lab=LAB, why="Look again.")
    out = queue(course, capsys)
    assert f"nothing of ada in {LAB} (looked in" in out
    assert f"nothing of adda (did you mean ada?) in {LAB} (looked in" in out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("student = ", "is no TOML"),
        ('student = "ada"', "does not say 'lab'"),
        ('student = "ada"\nlab = 4\nwhy = "x"', "'lab' is no text"),
        ('student = "ada"\nlab = "../labs/90_class"\nwhy = "x"', "is no lab's name or number"),
        ('student = "ada"\nlab = "/tmp"\nwhy = "x"', "is no lab's name or number"),
        ('student = "ada"\nlab = "04"\nwhy = "\x00"', "is no TOML"),
        ('student = "../ada"\nlab = "x"\nwhy = "x"', "../ada is no student's id"),
        (f'why = "{"x" * 30_000}"', "is no file of at most 20,000 bytes"),
    ],
)
def test_what_is_no_request_is_said(
    course: Course, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    ask(course, "odd").write_text(text)
    assert said in queue(course, capsys, code=1)


def test_a_link_is_no_request(course: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "secret").write_text('student = "ada"\nlab = "x"\nwhy = "x"')
    ask(course, "odd").unlink()
    (course.regrades / "odd.toml").symlink_to(tmp_path / "secret")
    assert "is no file of at most" in queue(course, capsys, code=1)


def test_without_requests_nothing_is_judged(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no folder" in queue(course, capsys, code=1)
    course.regrades.mkdir(parents=True)
    assert "put the students' requests there, a .toml each" in queue(course, capsys)


def test_every_file_among_the_requests_is_accounted_for(
    course: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ask(course, "odd", student="ada").parent
    (place / "Bob Roe_7_assignsubmission_file").mkdir()
    (place / "Bob Roe_7_assignsubmission_file" / "appeal.toml.txt").write_text('student = "bob"')
    (place / f"ada@{LAB}@odd.json").write_text("{}")  # an answer, and a verdict made for one
    (place / "verdicts" / LAB).mkdir(parents=True)
    (place / "verdicts" / LAB / f"ada@{LAB}.json").write_text("{}")
    out = queue(course, capsys, code=1)
    assert "appeal.toml.txt is no request, because its name does not end in .toml" in out
    assert out.count("not judged: ") == 2
