"""Feedback pages are nbconvert's own, made faster."""

from __future__ import annotations

from bs4 import BeautifulSoup
from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from traitlets.config import Config

from grading.lms.feedback import FeedbackExporter
from grading.lms.rendering import CELLS, code, coloured

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
