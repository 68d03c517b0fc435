"""Feedback pages are nbconvert's own, made faster."""

from __future__ import annotations

import contextlib

from bs4 import BeautifulSoup
from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.api import Gradebook
from nbgrader.converters import GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from grading.lms.feedback import FeedbackExporter
from grading.lms.gradebook import Writer
from grading.lms.nbgrader import nbgrader_config
from grading.lms.rendering import CELLS, code, coloured
from tests.grading.conftest import LAB, Class
from tests.grading.pages import pages, write

CELL = "@cuda.jit\ndef copy(a, b):\n    b[cuda.grid(1)] = a[0]  # <b> & 'quotes'"


def notebook(answer: str = CELL) -> NotebookNode:
    said = [
        new_output("stream", text="1 < 2 \x1b[31mred\x1b[0m"),
        new_output("execute_result", {"text/plain": "4"}),
    ]
    return new_notebook(
        cells=[
            new_markdown_cell(
                "# Title\n$x < y$ ![](data:image/png;base64,AA==) ![said](x.png) <img src='y.png'> <script>1</script>"
            ),
            new_code_cell(answer, outputs=said),
            new_code_cell("%%bash\nls"),
            new_code_cell(""),
        ],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )


def shown(page: str) -> list[str]:
    """A page as a browser reads it: entities, closing tags and empty lines may be written in several ways."""
    return [line for line in str(BeautifulSoup(page, "html.parser")).splitlines() if line.strip()]


def test_a_page_is_the_one_that_nbconvert_makes() -> None:
    config = Config({"HTMLExporter": {"template_name": "classic"}})
    given = notebook()
    ours, _ = FeedbackExporter(config=config).from_notebook_node(given)
    theirs, _ = HTMLExporter(config=config).from_notebook_node(given)
    assert shown(ours) == shown(theirs)
    assert "No description has been provided" in ours


def test_one_students_page_holds_nothing_of_anothers() -> None:
    exporter = FeedbackExporter(template_name="classic")
    first, _ = exporter.from_notebook_node(notebook("mine = 1"))
    second, _ = exporter.from_notebook_node(notebook("yours = 2"))
    assert "mine" in first and "yours" in second
    assert "yours" not in first and "mine" not in second


def test_what_is_remembered_does_not_grow_with_the_class() -> None:
    for number in range(CELLS + 50):
        code(f"x = {number}")
    assert coloured.cache_info().currsize == CELLS


def index(page: str) -> list[str]:
    """The list at the head of a page, and its headline."""
    soup = BeautifulSoup(page, "html.parser")
    rows = [soup.find("h4"), *soup.find(id="toc").find_all("li")]
    return [" ".join(row.get_text().split()) for row in rows]


def test_the_index_names_exercises_and_says_what_a_person_has_not_read(school: Class) -> None:
    school.hand_in("ann", {"why": "Because of padding. Score: 0.0 / 2.0"})
    write(school, "ann")
    head, *rows = index(pages(school, "ann")["feedback"])
    assert head == "90_class (Score: 0.0 / 13.0, before a person has read 1 answer)"
    assert rows == [
        "memory.copy (Score: 0.0 / 4.0)",
        "memory.sectors (Score: 0.0 / 3.0)",
        "memory.transpose (Score: 0.0 / 4.0)",
        "Written answer: why (a person will read it, for up to 2.0 points)",
    ]
    text = BeautifulSoup(pages(school, "ann")["feedback"], "html.parser").get_text()
    assert text.count("a person will read it, for up to 2.0 points") == 2
    assert "Because of padding. Score: 0.0 / 2.0" in text and "Grade cell" not in text

    with Gradebook(school.course.db_url) as book:
        grade = book.find_grade("why", LAB, LAB, "ann")
        grade.manual_score, grade.needs_manual_grade = 0.0, False
        book.db.commit()
    Writer(school.course, LAB).feedback("ann")
    head, *rows = index(pages(school, "ann")["feedback"])
    assert head == "90_class (Score: 0.0 / 13.0)" and rows[-1] == "Written answer: why (Score: 0.0 / 2.0)"


def test_nbgraders_own_command_makes_the_same_page(school: Class) -> None:
    school.hand_in("ann")
    write(school, "ann")
    ours = index(pages(school, "ann")["feedback"])
    config = nbgrader_config(school.course)
    step = GenerateFeedback(coursedir=CourseDirectory(config=config), config=config)
    step.coursedir.assignment_id, step.force = LAB, True
    with contextlib.chdir(school.course.root):
        step.start()
    assert index(pages(school, "ann")["feedback"]) == ours and "memory.copy" in ours[1]
