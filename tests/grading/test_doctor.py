"""`python -m grading doctor` says what would stop a run before one is started."""

from __future__ import annotations

from dataclasses import replace

from grading.core.course import Course
from grading.lms import doctor


def rows(course: Course) -> dict[str, tuple[bool, str]]:
    return {what: (good, words) for what, good, words in doctor.checks(course)}


def test_a_class_that_can_be_graded_is_well(course: Course) -> None:
    found = rows(course)
    assert found["course.toml"] == (True, "none: no due dates, and no rules")
    assert found["gradebook"] == (True, str(course.gradebook))


def test_a_rule_that_cannot_be_read_and_a_database_that_does_not_answer_are_told(course: Course) -> None:
    course.home.mkdir(exist_ok=True)
    course.settings.write_text("[lat]")
    elsewhere = replace(course, database="postgresql://t:s3cret@127.0.0.1:1/x")
    found = rows(elsewhere)
    good, words = found["course.toml"]
    assert not good and "the file has no 'lat'" in words
    good, words = found["gradebook"]
    assert not good and "refused" in words and "Fix this before you grade" in words and "s3cret" not in words
    good, words = rows(replace(course, database="no url"))["gradebook"]
    assert not good and "cannot be read" in words
