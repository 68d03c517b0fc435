"""In formgrader a criterion is a button: a click gives its points and says so to the learner."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import nbformat
import pytest
from nbgrader.api import Gradebook

from grading.core.course import Course
from grading.lms import rubric_items
from grading.lms.nbgrader import nbgrader_config
from tests.grading.conftest import LAB, Class
from tests.grading.test_bad_input import no_sandbox_needed
from tests.grading.test_final import grade
from tests.grading.test_formgrader_in_chromium import chromium, configuration, formgrader, photograph, visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["chromium", "no_sandbox_needed", "photograph"]  # fixtures

FIRST, SECOND = "A column lies in one bank.", "Padding moves each row on by one bank."


def comment(course: Course, student: str, text: str | None = None) -> str:
    """What a grader wrote to the written answer; with `text`, what one writes now."""
    with Gradebook(course.db_url) as book:
        found = book.find_comment("why", LAB, LAB, student)
        if text is not None:
            found.manual_comment = text
            book.db.commit()
        return found.comment or ""


def preprocessed(course: Course, student: str, resources: dict[str, str]) -> list[str]:
    """The cells that formgrader's page has and the autograded notebook does not."""
    config = nbgrader_config(course)
    path = course.autograded / student / LAB / f"{LAB}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    before = [cell.source for cell in notebook.cells]
    told = {"assignment_id": LAB, "notebook_id": LAB, **resources}
    notebook, _ = rubric_items.RubricItems(config=config).preprocess(notebook, told)
    return [cell.source for cell in notebook.cells if cell.source not in before]


def test_comments_of_before_are_offered_once_and_cannot_write_html(school: Class) -> None:
    for student in ("ann", "bob", "cy"):
        school.hand_in(student)
    grade(school.course, school.folder)
    comment(school.course, "ann", f"- ✓ 1 of 1: {FIRST}\n\nWhich count?")
    comment(school.course, "bob", "Which count?")
    comment(school.course, "cy", '<script>alert("x")</script>')
    assert rubric_items.given_before(school.course.db_url, LAB, LAB)["why"] == [
        "Which count?",
        '<script>alert("x")</script>',
    ]
    boxes = preprocessed(school.course, "ann", {"submission_id": "1"})
    (why,) = (box for box in boxes if 'data-cell="why"' in box)
    assert f'data-points="1" data-text="{FIRST}"' in why and "&lt;script&gt;" in why
    assert [box.count("<script>") for box in boxes[:-1]] == [0] * (len(boxes) - 1)
    assert preprocessed(school.course, "ann", {}) == []  # a page of feedback


@pytest.mark.browser
@pytest.mark.timeout(600)
def test_a_click_gives_points_and_a_line_to_the_learner_and_the_next_grader_sees_it(
    school: Class, chromium: Browser, photograph: Callable[[Page, str], None]
) -> None:
    course = school.course
    for student in ("ann", "bob"):
        school.hand_in(student)
    grade(course, school.folder)
    comment(course, "bob", "Which count shows it?")
    with Gradebook(course.db_url) as book:
        number = book.find_submission_notebook(LAB, LAB, "ann").id

    def saved() -> tuple[float | None, str]:
        with Gradebook(course.db_url) as book:
            return book.find_grade("why", LAB, LAB, "ann").manual_score, comment(course, "ann")

    (course.root / "nbgrader_config.py").write_text(
        f"{configuration(course)}c.merge(nbgrader_config(course))\n"
    )
    page = chromium.new_page(viewport={"width": 1280, "height": 1300})
    with formgrader(course) as address:
        visit(page, f"{address}/submissions/{number}/")
        page.wait_for_load_state("networkidle")
        page.get_by_role("button", name=FIRST).click()
        page.wait_for_load_state("networkidle")
        page.get_by_role("button", name="Which count shows it?").click()
        expected = (1.0, f"- ✓ 1 of 1: {FIRST}\n- ✗ 0 of 1: {SECOND}\n\nWhich count shows it?")
        for _ in range(100):
            if saved() == expected:
                break
            page.wait_for_timeout(200)
        assert saved() == expected
        photograph(page, "formgrader_rubric_items")
        visit(page, f"{address}/submissions/{number}/")
        page.wait_for_load_state("networkidle")
        pressed = page.locator(".rubric-items [aria-pressed=true]")
        pressed.wait_for()
        assert pressed.inner_text().endswith(FIRST)
        pressed.click()
        for _ in range(100):
            if saved()[0] == 0:
                break
            page.wait_for_timeout(200)
        assert saved() == (0.0, expected[1].replace("✓ 1", "✗ 0"))
    grade(course)
    told = (course.feedback / "ann" / LAB / f"{LAB}.html").read_text(encoding="utf-8")
    assert f"0 of 1: {FIRST}" in told and "rubric-items" not in told
