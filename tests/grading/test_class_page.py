"""One page on which an instructor sees a class: right numbers, nothing that runs, readable on a phone."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

import pytest
from bs4 import BeautifulSoup
from hypothesis import given as random
from hypothesis import strategies as st

from grading.__main__ import main
from grading.core.course import Course
from grading.core.verdicts import Line
from grading.lms import class_page, gradebook, retention
from grading.lms.final import Final
from grading.lms.gradebook import Held
from grading.lms.roster import Student
from tests.grading.conftest import LAB, Class, cell_of
from tests.grading.test_bad_input import FakeJudge, no_sandbox_needed
from tests.grading.test_final import give, grade
from tests.grading.test_formgrader_in_chromium import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["chromium", "no_sandbox_needed"]
OTHER = "91_other"
SCRIPT = "<script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">"


def had(student: str, lab: str, points: float, of: float = 10.0, name: str = "") -> Final:
    cell = Held(student, lab, "cell", of, points, None, None, False, 0.0)
    return Final(Student(student, name=name), lab, of, {(lab, "cell"): cell})


def missing(student: str, lab: str, of: float = 10.0) -> Final:
    return Final(Student(student), lab, of)


def section(course: Course, heading: str) -> str:
    """The words from a heading to the next one."""
    page = BeautifulSoup(course.class_page.read_text(), "html.parser")
    found = next(h for h in page.find_all("h2") if h.text == heading)
    parts = []
    for each in found.next_siblings:
        if each.name == "h2":
            break
        parts.append(each.get_text(" "))
    return " ".join(" ".join(parts).split())


def test_who_falls_behind_is_named_with_the_reason() -> None:
    tables = {
        "01": [had("ann", "01", 9), had("bob", "01", 9), had("cy", "01", 3), missing("dan", "01")],
        "02": [had("ann", "02", 8), had("bob", "02", 5), had("cy", "02", 4), had("dan", "02", 10)],
    }
    assert {each.who.id: each.signs for each in class_page.standings(tables)} == {
        "ann": (),
        "bob": ("50% in the last lab, 90% before",),
        "cy": ("35% of all points",),
        "dan": ("nothing of 01",),
    }
    assert [each.who.id for each in class_page.standings(tables)] == ["cy", "dan", "bob", "ann"]


@random(st.lists(st.integers(0, 260)))
def test_the_distribution_counts_everybody_once_in_the_right_tenth(points: list[int]) -> None:
    counts = class_page.histogram(value / 200 for value in points)
    plain = [sum(20 * i <= value < 20 * (i + 1) for value in points) for i in range(9)]
    assert counts == [*plain, sum(value >= 180 for value in points)]


@pytest.fixture
def graded(school: Class) -> Course:
    """A class of three and two labs, one of which Bob has not handed in; names and reasons bring scripts."""
    course = school.course
    course.home.mkdir(exist_ok=True)
    course.roster.write_text(f'id,name\nann,"{SCRIPT.replace(chr(34), chr(34) * 2)}"\nbob,Bob Roe\ncy,\n')
    for place in (course.solutions, course.labs):
        shutil.copytree(place / LAB, place / OTHER)
    gradebook.register(course, OTHER, {LAB: school.released})
    nothing = {"why": cell_of(school.released, "why").source}
    for student in ("ann", "bob", "cy"):
        school.hand_in(student, None if student == "ann" else nothing)
    assert grade(course, school.folder) == 0
    give(course, "ann", 2.0)
    give(course, "bob", 1.0, "copy-check")
    folder = school.folder.parent / "other"
    for student in ("ann", "cy"):
        (folder / student / OTHER).mkdir(parents=True)
        (folder / student / OTHER / f"{LAB}.ipynb").write_text(json.dumps(school.notebook(nothing)))
    assert main(["grade", OTHER, str(folder), "--workers", "2"], course) == 0
    return course


def test_the_page_has_what_the_gradebook_has(graded: Course) -> None:
    assert "Bob Roe (bob) nothing of 91_other; 31% of all points" in section(graded, "Who falls behind")
    labs = section(graded, "The labs")
    assert f"{LAB} 0 % of the points 100 % Median 85%" in labs and "3 students: 3 final" in labs
    each = section(graded, "Each exercise")
    assert f"memory.copy {LAB} 75% 67%" in each and f"memory.copy {OTHER} 100% 100%" in each
    assert f"why {LAB} 33% 33%" in each
    assert section(graded, "Everybody").startswith("3 students student labs points Bob Roe (bob) 1 of 2 31%")


def test_what_the_class_gets_wrong_counts_students_and_not_lines(
    school: Class, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = FakeJudge.verdict

    def wrong(self: FakeJudge, *asked: object) -> object:
        found = right(self, *asked)  # type: ignore[arg-type]
        first = replace(found.exercises[0], lines=(Line("right", 0.0, 4.0, "", "", f"wrong {SCRIPT[:20]}"),))
        return replace(found, exercises=(first, *found.exercises[1:]))

    monkeypatch.setattr(FakeJudge, "verdict", wrong)
    for student in ("ann", "bob"):
        school.hand_in(student)
    grade(school.course, school.folder)
    told = section(school.course, "What the class gets wrong")
    assert f"2 memory.copy {LAB} wrong <script>document.tit" in told


def test_the_page_goes_with_the_data_of_its_students(graded: Course) -> None:
    gone = [each for each in retention.past(graded, datetime(2999, 1, 1)) if each.student == "bob"]
    retention.forget(graded, gone)
    assert not graded.class_page.exists()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_runs_or_is_asked_for_and_a_phone_shows_it_all(
    graded: Course, chromium: Browser, scheme: str
) -> None:
    context = chromium.new_context(viewport={"width": 390, "height": 800}, color_scheme=scheme)
    page, asked = context.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(graded.class_page.as_uri())
    page.locator("summary").click()
    assert asked == [graded.class_page.as_uri()]
    assert page.title() == "How the class stands"
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
    assert SCRIPT in page.locator("body").inner_text()
    ink, paper = (
        sum(map(int, page.evaluate(f"getComputedStyle(document.body).{what}")[4:-1].split(",")))
        for what in ("color", "backgroundColor")
    )
    assert (paper - ink > 400) if scheme == "light" else (ink - paper > 400)
    heights = page.evaluate("[...document.querySelectorAll('.bars i')].map(bar => bar.offsetHeight)")
    assert max(heights) > 80 and min(heights) == 0


def test_a_lab_with_a_roster_counts_for_its_own_students_only() -> None:
    tables = {"01": [had("ann", "01", 9), missing("cy", "01")], "02": [had("bob", "02", 8)]}
    listed = {each.who.id: each for each in class_page.standings(tables, {"01", "02"})}
    assert {who: (each.handed_in, each.of, each.share) for who, each in listed.items()} == {
        "ann": (1, 1, 0.9), "bob": (1, 1, 0.8), "cy": (0, 1, 0.0),
    }  # fmt: skip
    assert listed["cy"].signs[0] == "nothing of 01" and not listed["ann"].signs
    open_to_all = {each.who.id: each for each in class_page.standings(tables, {"01"})}
    assert open_to_all["ann"].signs == ("nothing of 02", "45% of all points")
    assert not open_to_all["bob"].signs


def test_a_lab_graded_with_another_roster_is_not_missing(school: Class) -> None:
    course = school.course
    shutil.copytree(course.labs / LAB, course.labs / OTHER)
    course.home.mkdir(exist_ok=True)
    first, second = course.home / "first.csv", course.home / "second.csv"
    first.write_text("id\nann\n")
    second.write_text("id\nbob\n")
    school.hand_in("ann")
    assert grade(course, school.folder, "--roster", first) == 0
    shutil.move(school.folder / "ann", school.folder / "bob")
    shutil.move(school.folder / "bob" / LAB, school.folder / "bob" / OTHER)
    assert main(["grade", OTHER, str(school.folder), "--roster", str(second)], course) == 0
    assert section(course, "Who falls behind") == "Nobody."
