"""Late submissions lose what the course's file says, and no more; what makes no sense in it is said in words."""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nbgrader.api import Gradebook

from grading.__main__ import main
from grading.core.course import Course
from grading.core.errors import GradingError
from grading.core.sandbox import Limits
from grading.lms import classroom, final, late, settings
from grading.lms.roster import Roster
from grading.lms.settings import Late

from .conftest import LAB, Class

RULES = f"""
timezone = "Europe/Berlin"
[due]
{LAB} = 2027-01-15T23:59:00
[extra.{LAB}]
extended = 2027-01-20T23:59:00
[late]
per_day = 10
most = 25
grace_hours = 2
"""
DAY = timedelta(days=1)


@given(st.floats(-10, 30))
def test_each_day_begun_costs_the_same_up_to_the_most(days: float) -> None:
    rule = Late(0.1, 0.25, timedelta(hours=2))
    share = rule.share(days * DAY)
    assert 0 <= share <= 0.25
    if days * 24 <= 2:
        assert share == 0
    else:
        assert share == pytest.approx(min(0.25, 0.1 * -(-days * DAY // DAY)))


@given(st.floats(0, 30), st.floats(0, 30))
def test_later_is_never_cheaper(first: float, second: float) -> None:
    rule = Late(0.07, 0.6, timedelta(hours=5))
    assert (rule.share(first * DAY) <= rule.share(second * DAY)) or second < first


@pytest.mark.parametrize(
    ("text", "zone", "utc"),
    [
        ("Friday, 15 January 2027, 11:59 PM", "Europe/Berlin", "2027-01-15T22:59"),
        ("Friday, 15 January 2027, 23:59", "America/New_York", "2027-01-16T04:59"),
        ("2027-07-15 23:59", "Europe/Berlin", "2027-07-15T21:59"),
        ("2027-07-15T23:59:00+00:00", "Europe/Berlin", "2027-07-15T23:59"),
    ],
)
def test_times_of_a_worksheet_are_read(text: str, zone: str, utc: str) -> None:
    assert late.moment(text, ZoneInfo(zone)) == datetime.fromisoformat(utc)


@pytest.mark.parametrize("text", ["", "-", "yesterday", "Freitag, 15. Januar 2027, 23:59"])
def test_what_is_no_time_is_none(text: str) -> None:
    assert late.moment(text, UTC) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[due", "is no TOML"),
        (
            "[[extension.ada@uni.edu]]",
            'An id with a dot or an @ needs quotation marks, such as "ada@uni.edu"',
        ),
        (f"[extra.{LAB}]\nada.love = 2027-01-15T23:59:00Z", "no time but a table. An id with a dot"),
        (f'[waive.{LAB}]\nada.love = "ill"', "ada is no reason but a table. An id with a dot or an @"),
        ("[[extension.ada.love]]\ndays = 3", "known are days, labs, why. An id with a dot or an @"),
        (
            "[dew]",
            "the file has no 'dew' (did you mean due?); known are timezone, release, due, extra, extension, waive, group, late, slip, retention",
        ),
        ("due = 3", "'due' is a table: write [due]"),
        ("[due]\n99_x = 2027-01-15T23:59:00Z", f"there is no lab '99_x'; labs are {LAB}"),
        (f"[due]\n{LAB} = 2027-01-15T23:59:00", 'add timezone = "Europe/Berlin" at the top'),
        (f'[due]\n{LAB} = "tomorrow"', "is no time: write 2027-01-15T23:59:00, without quotation marks"),
        (f"[extra.{LAB}]\nada = 2027-01-15T23:59:00Z", "needs a due date in [due]"),
        (
            f"[release]\n{LAB} = 2027-01-15T08:00:00Z\n[due]\n{LAB} = 2027-01-08T23:59:00Z",
            f"{LAB} is due at 2027-01-08 23:59 UTC, before [release] hands it out at 2027-01-15 08:00 UTC",
        ),
        (f"[release]\n{LAB} = 2027-01-15", "is no time: write 2027-01-15T23:59:00"),
        (f"[waive.{LAB}]\nada = true", 'ada has no reason: write ada = "hospital"'),
        ('[waive.99_x]\nada = "ill"', "there is no lab '99_x'"),
        ("[[extension.ada]]\nwhy = 'ill'", "[extension.ada] needs 'days'"),
        ("[extension]\nada = 3", "'extension.ada' is a table: write [[extension.ada]] and days = 3"),
        ("[extension.ada]\ndays = 3\nuntil = 4", "[extension.ada] has no 'until'; known are days, labs, why"),
        ("[extension.ada]\ndays = 3\nlabs = '04'", "labs is no list of names"),
        ("[extension.ada]\ndays = 3\nlabs = []", "labs names none"),
        ("[extension.ada]\ndays = 3\nlabs = ['99_x']", "there is no lab '99_x'"),
        ("[slip]\nper_lab = 2", "[slip] needs 'days'"),
        ("[slip]\ndays = 2.5", "[slip] days = 2.5 is no whole number"),
        ("slip = 5", "'slip' is a table: write [slip]"),
        ('timezone = "Mars/Olympus"', "there is no timezone 'Mars/Olympus'"),
        ("[late]\nmost = 3", "[late] needs 'per_day'"),
        ("[late]", "[late] needs 'per_day'"),
        ("[late]\nper_day = -1", "per_day = -1 is no number from 0 to 100"),
        ("[late]\nper_day = true", "per_day = True is no number"),
        ("[late]\nper_day = nan", "per_day = nan is no number"),
        ("[retention]\ndays = 1e9", "days = 1000000000.0 is no number from 0 to 100000"),
        ("[retention]", "[retention] needs 'days'"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line(course: Course, text: str, said: str) -> None:
    course.settings.parent.mkdir(parents=True, exist_ok=True)
    course.settings.write_text(text)
    with pytest.raises(GradingError, match=re.escape(said)) as caught:
        settings.read(course)
    assert "course.toml" in str(caught.value) and "\n" not in str(caught.value)


def test_a_damaged_file_stops_grading_before_anything_is_judged(
    school: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    school.hand_in_stub("ada")
    school.course.settings.write_text("[late]\nper_day = 'ten'")
    assert main(["grade", LAB, str(school.folder), "--unsafe"], school.course) == 1
    assert "per_day = 'ten' is no number" in " ".join(capsys.readouterr().out.split())
    assert not school.course.verdicts.exists()


def stamp(school: Class, student: str, when: str) -> None:
    (school.path(student).parent / "timestamp.txt").write_text(when)


def feedback(course: Course, student: str) -> str:
    return (course.feedback / student / LAB / f"{LAB}.html").read_text()


def penalties(course: Course) -> dict[str, float]:
    return {row["student"]: float(row["late"]) for row in csv.DictReader(course.grades.open())}


def test_a_class_in_which_some_are_late(needs_sandbox: None, school: Class) -> None:
    course = school.course
    for student in ("grace", "day", "week", "extended", "timeless"):
        school.hand_in(student, {"copy": "", "transpose": ""})  # what is right costs no time here
    stamp(school, "grace", "2027-01-16 00:30:00 UTC")
    stamp(school, "day", "2027-01-16 20:00:00 Europe/Berlin")
    stamp(school, "week", "2027-01-22 20:00:00 UTC")
    stamp(school, "extended", "2027-01-21 12:00:00 UTC")
    course.settings.write_text(RULES)

    def grade(**more: object) -> dict[str, float]:
        classroom.grade(course, LAB, school.folder, limits=Limits(seconds=60, patience=20), **more)
        return penalties(course)

    found = grade()
    points = {r["student"]: float(r["points"]) for r in csv.DictReader(course.grades.open())}
    assert points["grace"] > 2 and len(set(points.values())) == 1
    of = points["grace"]
    expected = {"grace": 0, "day": 0.1, "week": 0.25, "extended": 0.1, "timeless": 0}
    assert found == {who: -round(share * of, 2) for who, share in expected.items()}
    totals = {each.who.id: each.total for each in final.table(course, LAB, Roster())}
    assert totals["week"] == pytest.approx(0.75 * of, abs=0.01)
    assert "Late submission penalty" in feedback(course, "day")
    assert "Late submission penalty" not in feedback(course, "grace")

    # A person's points count, too, and a roster can say when somebody handed in.
    with Gradebook(course.db_url) as book:
        book.find_grade("why", LAB, LAB, "day").manual_score = 2.0
        book.db.commit()
    roster = course.home / "times.csv"
    roster.write_text("id,handed_in\n" + "".join(f"{who},\n" for who in expected if who != "timeless"))
    with roster.open("a") as file:
        file.write('timeless,"Sunday, 17 January 2027, 01:00 AM"\n')
    found = grade(roster=roster)
    assert found["day"] == -round(0.1 * (of + 2), 2)
    assert found["timeless"] == -round(0.2 * of, 2)
    assert f"(Score: -{-found['timeless']:.2f}".rstrip("0") in feedback(course, "timeless")

    # The rule changes, and nobody is judged again.
    course.settings.write_text(RULES.replace("per_day = 10", "per_day = 0"))
    assert set(grade(roster=roster).values()) == {0.0}
    assert "Late submission penalty" not in feedback(course, "week")

    # The rule goes, and with it all that was taken off.
    course.settings.write_text(RULES)
    assert grade(roster=roster)["week"] < 0
    course.settings.write_text(RULES.partition("[late]")[0])
    assert set(grade(roster=roster).values()) == {0.0}
    assert "Late submission penalty" not in feedback(course, "week")


def test_without_a_rule_nothing_is_taken_off(course: Course) -> None:
    course.settings.parent.mkdir(parents=True, exist_ok=True)
    course.settings.write_text('timezone = "UTC"\n[late]\nper_day = 10\n')
    known = settings.read(course)
    assert late.charges(known, "ada", {LAB: datetime(2030, 1, 1)}) == {LAB: late.Charge()}


def test_a_stamp_that_says_nothing_costs_nothing(tmp_path: Path) -> None:
    for text in ("", "soon", "99999-01-01"):
        (tmp_path / "timestamp.txt").write_text(text)
        assert late.handed_in_at(tmp_path / "timestamp.txt") is None
    assert late.handed_in_at(tmp_path / "none") is None
