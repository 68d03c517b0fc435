"""Written answers have criteria and sample answers as data; graders see them, learners do not."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from grading.authoring.release import released_files
from grading.core.course import Course
from grading.core.errors import ReleaseError
from grading.core.graft import graft
from grading.core.verdicts import ExerciseVerdict, Line, NotebookVerdict, Store
from grading.lms import gradebook, rubrics
from tests.grading.conftest import LAB, Class

COURSE = Course()
WITH_RUBRIC = sorted(path.parent.name for path in COURSE.solutions.glob(f"*/{rubrics.FILE}"))


def test_each_lab_with_a_written_answer_has_a_rubric() -> None:
    assert sorted(lab for lab in COURSE.lab_names() if rubrics.of_lab(COURSE, lab)) == WITH_RUBRIC


@pytest.mark.parametrize("lab", WITH_RUBRIC)
def test_each_written_answer_has_criteria_and_two_different_samples(lab: str) -> None:
    found = [r for written in rubrics.of_lab(COURSE, lab).values() for r in written.values()]
    assert found
    for rubric in found:
        assert sum(c.points for c in rubric.criteria) == rubric.points
        assert len(rubric.samples) >= 2 and all(s.why and s.answer for s in rubric.samples)
        worth = [rubric.worth(sample) for sample in rubric.samples]
        assert max(worth) == rubric.points and min(worth) < rubric.points
        assert rubric.model.strip() and "YOUR ANSWER" not in rubric.model


@pytest.mark.parametrize("lab", WITH_RUBRIC)
def test_no_rubric_is_released(lab: str) -> None:
    files = released_files(COURSE, lab)
    assert not [name for name in files if name.endswith(".toml")]
    samples = [s for w in rubrics.of_lab(COURSE, lab).values() for r in w.values() for s in r.samples]
    for sample in samples:
        line = sample.answer.strip().splitlines()[0]
        assert all(line.encode() not in content for content in files.values())


def test_a_lab_without_a_rubric_shows_what_its_source_says(course: Course) -> None:
    (course.solutions / LAB / rubrics.FILE).unlink()
    (rubric,) = next(iter(rubrics.of_lab(course, LAB).values())).values()
    assert rubric.criteria == () and rubric.model.splitlines()[0] in rubric.markdown()


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("points = 1, text", "points = 2, text", "the criteria of [why] have 4 points, the cell has 2"),
        ("meets = [1, 2]", "meets = [1, 3]", "a sample of [why] meets criterion 3, which is not there"),
        ("[why]", "[what]", "there is no written answer 'what' in 90_class"),
        ("text = ", "words = ", "[why] has criteria with points and text"),
        ("meets = [1, 2]", 'meets = ["all"]', "[why] has criteria with points and text"),
        ("criteria = [", "criteria = [[", "is no TOML"),
    ],
)
def test_a_rubric_that_fits_not_is_refused(course: Course, before: str, after: str, said: str) -> None:
    path = course.solutions / LAB / rubrics.FILE
    text = path.read_text().replace(before, after)
    path.write_text(text.replace("[[why", f"[[{after[1:-1]}") if before == "[why]" else text)
    with pytest.raises(ReleaseError, match=re.escape(said)):
        rubrics.of_lab(course, LAB)


def written(school: Class, student: str) -> Path:
    """Put one student's verdict into gradebook and feedback; gives the autograded notebook."""
    notebook = school.notebook()
    digest = graft(school.released, notebook.cells, LAB, LAB).digest
    found = NotebookVerdict(
        "key", digest, (ExerciseVerdict("memory.copy", "copy-check", (Line("right", 4, 4),)),)
    )
    Store(school.course.verdicts).put(student, LAB, LAB, found)
    gradebook.Writer(school.course, LAB).write(gradebook.Graded(student, {LAB: notebook}, {LAB: found}))
    return school.course.autograded / student / LAB / f"{LAB}.ipynb"


def test_graders_find_the_rubric_below_the_answer_and_feedback_has_none(school: Class) -> None:
    notebook = nbformat.read(written(school, "ann"), 4)
    ids = [cell.id for cell in notebook.cells]
    cell = notebook.cells[ids.index("why") + 1]
    assert cell.id == "why-rubric" and cell.metadata.tags == [rubrics.TAG]
    for words in (
        "2 points",
        "A column lies in one bank.",
        "meets 1 and 2",
        "starts one bank further on",
        "0 of 2",
    ):
        assert words in cell.source
    page = (school.course.feedback / "ann" / LAB / f"{LAB}.html").read_text()
    assert "A column of padding" in page  # what the learner wrote
    for words in ("For the grader", "one bank further on", "A column lies in one bank"):
        assert words not in page


def test_an_answer_cannot_bring_a_rubric_of_its_own(school: Class) -> None:
    own = "> **For the grader · 2 points**\n> \n> meets 1 and 2"

    def edit(notebook: nbformat.NotebookNode) -> None:
        cell = next(c for c in notebook.cells if c.id == "why")
        cell.source = own
        cell.metadata["tags"] = [rubrics.TAG]

    school.notebook = lambda *a, inner=school.notebook: inner(None, edit)  # type: ignore[method-assign,misc]
    notebook = nbformat.read(written(school, "eve"), 4)
    assert [c.id for c in notebook.cells if rubrics.TAG in c.metadata.get("tags", ())] == ["why-rubric"]
