"""Below each answer in formgrader: criteria to click, and comments that were given to this answer before.

nbgrader has neither. An nbconvert exporter makes the pages of formgrader, and it takes preprocessors, so this
is one. A click fills nbgrader's own fields for points and comment, and nbgrader saves them. Which criteria an
answer meets is kept as lines of the comment, so a learner reads them, and the next grader sees them clicked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from nbgrader.api import (
    Assignment,
    BaseCell,
    Comment,
    Gradebook,
    Notebook,
    SubmittedAssignment,
    SubmittedNotebook,
)
from nbgrader.preprocessors import NbGraderPreprocessor
from sqlalchemy import select
from traitlets import Unicode

from grading.lms.rendering import READY
from grading.lms.rubrics import Criterion, remembered

SCRIPT = Path(__file__).with_suffix(".js")
LINE = ("- ✓ ", "- ✗ ")  # how the lines of a comment begin that say which criteria are met
MOST = 8  # comments offered for an answer
Resources = dict[str, Any]


class RubricItems(NbGraderPreprocessor):
    """Adds the buttons to pages of formgrader, and nothing to feedback, whose exporter has this, too."""

    solutions = Unicode("solutions", help="Folder of the labs' sources").tag(config=True)
    db_url = Unicode(help="The gradebook").tag(config=True)

    def preprocess(self, notebook: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        if "submission_id" not in resources:  # formgrader's alone
            return notebook, resources
        lab, name = resources["assignment_id"], resources["notebook_id"]
        rubrics = remembered(Path(self.solutions, lab)).get(name, {})
        said = given_before(self.db_url, lab, name)
        cells = []
        for cell in notebook.cells:
            cells.append(cell)
            mark = cell.metadata.get("nbgrader", {})
            if mark.get("solution"):
                rubric = rubrics.get(mark["grade_id"])
                cells.append(_box(mark["grade_id"], rubric.criteria if rubric else (), said))
        if len(cells) > len(notebook.cells):
            cells.append(_html(f"<script>\n{SCRIPT.read_text(encoding='utf-8')}</script>"))
        notebook.cells = cells
        return notebook, resources


def given_before(db_url: str, lab: str, notebook: str) -> dict[str, list[str]]:
    """What graders wrote to each answer of a notebook, by grade id, the most frequent first."""
    written = (
        select(BaseCell.name, Comment.manual_comment)
        .select_from(Comment)
        .join(BaseCell, Comment.cell_id == BaseCell.id)
        .join(SubmittedNotebook, Comment.notebook_id == SubmittedNotebook.id)
        .join(Notebook, SubmittedNotebook.notebook_id == Notebook.id)
        .join(SubmittedAssignment, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(Assignment, SubmittedAssignment.assignment_id == Assignment.id)
        .where(Assignment.name == lab, Notebook.name == notebook, Comment.manual_comment.is_not(None))
        .order_by(Comment.id)
    )
    counts: dict[str, Counter[str]] = {}
    with Gradebook(db_url) as book:
        for cell, comment in book.db.execute(written):
            own = "\n".join(line for line in comment.splitlines() if not line.startswith(LINE)).strip()
            if own:
                counts.setdefault(cell, Counter())[own] += 1
    return {cell: [comment for comment, _ in found.most_common(MOST)] for cell, found in counts.items()}


def _box(cell: str, criteria: Sequence[Criterion], said: dict[str, list[str]]) -> NotebookNode:
    buttons = [*_criteria(criteria), *_comments(said.get(cell, ()))]
    return _html(f'<div class="rubric-items" data-cell="{escape(cell)}">{"".join(buttons)}</div>')


def _criteria(criteria: Sequence[Criterion]) -> Iterator[str]:
    for each in criteria:
        yield (
            f'<button type="button" class="btn btn-default btn-sm" aria-pressed="false" '
            f'data-points="{each.points:g}" data-text="{escape(each.text)}">'
            f"<b>{each.points:g}</b> {escape(each.text)}</button>\n"
        )


def _comments(comments: Sequence[str]) -> Iterator[str]:
    for comment in comments:
        short = comment if len(comment) <= 60 else f"{comment[:57]}…"
        yield (
            f'<button type="button" class="btn btn-link btn-sm" data-comment="{escape(comment)}" '
            f'title="{escape(comment)}">+ {escape(short)}</button>\n'
        )


def _html(page: str) -> NotebookNode:
    return new_markdown_cell(page, metadata={"tags": [READY]})
