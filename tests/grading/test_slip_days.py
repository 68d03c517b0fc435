"""Extensions, slip days and waivers: over all labs, told in the table, and held to a small plain model."""

from __future__ import annotations

import csv
import json
import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbgrader.api import Gradebook

from grading.__main__ import main
from grading.core.course import Course
from grading.lms import gradebook, late
from grading.lms.settings import Extension, Late, Settings, Slip
from tests.grading.conftest import LAB, Class
from tests.grading.test_bad_input import no_sandbox_needed

__all__ = ["no_sandbox_needed"]  # a fixture that every test here uses

START, HOUR = datetime(2027, 1, 1), timedelta(hours=1)
NAMES = ("01_a", "02_b", "03_c", "04_d")
OTHER = "91_other"

hours = st.integers(0, 24 * 8)
terms = st.fixed_dictionaries(
    {
        "due": st.dictionaries(st.sampled_from(NAMES), hours, min_size=1),
        "handed_in": st.dictionaries(st.sampled_from(NAMES), hours, min_size=1),
        "more": st.dictionaries(st.sampled_from(NAMES), st.integers(0, 3)),
        "waived": st.sets(st.sampled_from(NAMES), max_size=2),
        "days": st.integers(0, 5),
        "per_lab": st.integers(0, 3),
        "grace": st.integers(0, 30),
    }
)


def plain(term: dict[str, dict[str, int]], grace: int, days: int, per_lab: int) -> dict[str, tuple[int, int]]:
    """Days that cost something, and slip days, of each lab: counted one after the other, in hours."""
    left, found = days, {}
    for lab in sorted(term["due"], key=lambda lab: (term["due"][lab], lab)):
        if lab not in term["handed_in"]:
            continue
        found[lab] = (0, 0)
        if lab in term["waived"]:
            continue
        when, deadline = term["handed_in"][lab], term["due"][lab] + 24 * term["more"].get(lab, 0)
        slipped = costly = 0
        while when > deadline + grace and slipped < per_lab and left:
            deadline, slipped, left = deadline + 24, slipped + 1, left - 1
        if when > deadline + grace:
            while when > deadline:
                deadline, costly = deadline + 24, costly + 1
        found[lab] = (costly, slipped)
    return found


@given(terms)
def test_every_term_costs_what_a_plain_count_says(term: dict) -> None:
    known = Settings(
        due={lab: START + at * HOUR for lab, at in term["due"].items()},
        extensions={
            "ada": tuple(Extension(timedelta(days=days), (lab,)) for lab, days in term["more"].items())
        },
        waived={lab: {"ada": "ill"} for lab in term["waived"]},
        late=Late(0.001, 1.0, term["grace"] * HOUR),
        slip=Slip(term["days"], term["per_lab"]),
    )
    handed_in = {lab: START + at * HOUR for lab, at in term["handed_in"].items()}
    found = late.charges(known, "ada", handed_in)
    expected = plain(term, term["grace"], term["days"], term["per_lab"])
    assert {lab: (round(each.share * 1000), each.slip) for lab, each in found.items()} == {
        lab: expected.get(lab, (0, 0)) for lab in handed_in
    }


def test_an_extension_without_labs_is_for_all_and_the_latest_date_counts() -> None:
    known = Settings(
        due={lab: START for lab in NAMES},
        extra={NAMES[0]: {"ada": START + 96 * HOUR}},
        extensions={"ada": (Extension(timedelta(days=2), why="illness"), Extension(timedelta(days=1)))},
        late=Late(0.1),
    )
    found = late.charges(known, "ada", {lab: START + 49 * HOUR for lab in NAMES[:2]})
    assert found[NAMES[0]] == late.Charge(why="due 2027-01-05 00:00 UTC")
    assert found[NAMES[1]] == late.Charge(0.1, 0, "due 2027-01-03 00:00 UTC (illness); late by 1 h; 10 % off")


@pytest.mark.parametrize(
    ("due", "handed_in", "words"),
    [
        ("2027-01-15 23:59", "2027-01-17 22:10", "late by 1 day 22 h 11 min; 20 % off"),
        ("2027-01-15 23:59", "2027-01-16 00:59", "late by 1 h; 10 % off"),
        ("2027-01-15 23:59", "2027-01-16 00:00", "late by 1 min; 10 % off"),
        ("2027-01-15 12:00", "2027-01-18 12:05", "late by 3 days 5 min; 40 % off"),
    ],
)
def test_how_late_it_was_is_told_to_the_minute(due: str, handed_in: str, words: str) -> None:
    """So that a student who reckons it from the two times gets the same."""
    known = Settings(due={NAMES[0]: datetime.fromisoformat(due)}, late=Late(0.1))
    found = late.charges(known, "ada", {NAMES[0]: datetime.fromisoformat(handed_in)})
    assert found[NAMES[0]].why == words


RULES = f"""
timezone = "UTC"
[due]
{LAB} = 2027-01-10T12:00:00
{OTHER} = 2027-01-20T12:00:00
[[extension.bob]]
days = 3
labs = ["{LAB}"]
why = "=illness"
[waive.{LAB}]
cleo = "hospital"
[late]
per_day = 10
[slip]
days = 3
per_lab = 2
"""


@pytest.fixture
def two_labs(school: Class) -> Class:
    course = school.course
    shutil.copytree(course.solutions / LAB, course.solutions / OTHER)
    shutil.copytree(course.labs / LAB, course.labs / OTHER)
    gradebook.register(course, OTHER, {LAB: school.released})
    return school


def hand_in(course: Course, folder: Path, lab: str, times: dict[str, str], school: Class) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for student, when in times.items():
        place = folder / student / lab
        place.mkdir(parents=True)
        (place / f"{LAB}.ipynb").write_text(json.dumps(school.notebook()))
        (place / "timestamp.txt").write_text(f"{when} UTC")
    assert main(["grade", lab, str(folder), "--workers", "2"], course) == 0


def told(course: Course, lab: str) -> dict[str, tuple[str, str]]:
    with course.grades.open() as file:
        return {r["student"]: (r["late"], r["why"]) for r in csv.DictReader(file) if r["lab"] == lab}


def test_a_term_of_two_labs_in_a_real_gradebook(two_labs: Class, capsys: pytest.CaptureFixture[str]) -> None:
    course, folder = two_labs.course, two_labs.folder
    course.settings.write_text(RULES)
    later = {"ann": "2027-01-22 11:00:00", "cleo": "2027-01-22 11:00:00", "dan": "2027-01-20 11:00:00"}
    hand_in(course, folder, OTHER, later, two_labs)
    assert told(course, OTHER) == {
        "ann": ("0.0", "late by 1 day 23 h; 2 slip days, 1 left"),
        "cleo": ("0.0", "late by 1 day 23 h; 2 slip days, 1 left"),
        "dan": ("0.0", ""),
    }
    page = course.feedback / "ann" / OTHER / f"{LAB}.html"
    assert "Late submission penalty" not in page.read_text()
    first = {
        "ann": "2027-01-12 11:00:00", "bob": "2027-01-13 11:00:00", "cleo": "2027-01-19 11:00:00", "dan": "2027-01-13 13:00:00",
    }  # fmt: skip
    hand_in(course, folder, LAB, first, two_labs)
    assert told(course, LAB) == {
        "ann": ("0.0", "late by 1 day 23 h; 2 slip days, 1 left"),
        "bob": ("0.0", "due 2027-01-13 12:00 UTC (=illness)"),
        "cleo": ("0.0", "late by 8 days 23 h; waived: hospital"),
        "dan": ("-2.2", "late by 3 days 1 h; 2 slip days, 1 left; 20 % off"),
    }
    # The lab that was due first has its slip days first, so the later one has only what is left.
    assert told(course, OTHER)["ann"] == ("-1.1", "late by 1 day 23 h; 1 slip day, 0 left; 10 % off")
    assert told(course, OTHER)["cleo"] == ("0.0", "late by 1 day 23 h; 2 slip days, 1 left")
    assert "Late submission penalty" in page.read_text()
    with (course.home / f"grades-{LAB}.csv").open() as file:
        assert next(csv.DictReader(file))["why"] == "late by 1 day 23 h; 2 slip days, 1 left"


def test_an_id_that_nobody_has_is_said(two_labs: Class, capsys: pytest.CaptureFixture[str]) -> None:
    two_labs.course.settings.write_text(RULES)
    hand_in(two_labs.course, two_labs.folder, LAB, {"ann": "2027-01-10 11:00:00"}, two_labs)
    said = " ".join(capsys.readouterr().out.split())
    assert "so nobody gets what [extension] gives it: bob. Correct it in course.toml" in said
    assert f"so nobody gets what [waive.{LAB}] gives it: cleo." in said


def test_a_lab_that_costs_something_else_now_is_named_and_its_table_says_so(
    two_labs: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    course = two_labs.course
    rules = f'timezone = "UTC"\n[due]\n{OTHER} = 2027-01-20T12:00:00\n'
    course.settings.write_text(f"{rules}[late]\nper_day = 10\n")
    hand_in(course, two_labs.folder, OTHER, {"ann": "2027-01-22 11:00:00"}, two_labs)
    with Gradebook(course.db_url) as book:
        written = book.find_grade("why", LAB, OTHER, "ann")
        written.manual_score, written.needs_manual_grade = 2.0, False
        book.db.commit()
    assert main(["grade", OTHER, "--export", "canvas"], course) == 0
    table = course.home / f"grades-{OTHER}.csv"
    assert [(row["late"], row["total"]) for row in csv.DictReader(table.open())] == [("-2.6", "10.4")]
    hand_in(course, two_labs.folder, LAB, {"bob": "2027-01-22 11:00:00"}, two_labs)
    assert "other labs" not in capsys.readouterr().out
    course.settings.write_text(rules)
    assert main(["grade", LAB], course) == 0
    assert f"other labs: {OTHER} (1 grade not as exported: ann)\n" in capsys.readouterr().out
    assert [(row["late"], row["total"]) for row in csv.DictReader(table.open())] == [("0.0", "13.0")]
    assert main(["grade", OTHER, "--export", "canvas"], course) == 0
    capsys.readouterr()
    assert main(["grade", LAB], course) == 0
    assert "not as exported" not in capsys.readouterr().out
