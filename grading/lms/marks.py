"""What the head of a feedback page says of each graded cell: its exercise, and whether a person has read it.

nbgrader calls every exercise "Test cell", and a written answer that nobody has read has 0 points there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from typing import Any

from nbformat import NotebookNode
from nbgrader.preprocessors import GetGrades

from grading.core.errors import ReleaseError
from grading.core.notebooks import questions

SCORE = r"Score: -?[\d.]+ / (-?[\d.]+)"
UNREAD = r"\1a person will read it, for up to \2 points"


@dataclass(frozen=True)
class Mark:
    """A graded cell: its grade id, what learners know it as, and whether it waits for its first reader."""

    cell: str
    title: str
    unread: bool


class Grades(GetGrades):
    """Takes points and comments from the gradebook, and leaves a `Mark` for each graded cell."""

    def preprocess(
        self, notebook: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        self.marks: list[Mark] = []
        self.exercises: dict[str, str] = {}
        with suppress(ReleaseError):  # of a lab that was released when test cells looked otherwise
            self.exercises = {q.cell: q.exercise for q in questions(notebook)}
        notebook, resources = super().preprocess(notebook, resources)
        resources["marks"] = self.marks
        return notebook, resources

    def _get_score(self, cell: NotebookNode, resources: dict[str, Any]) -> None:
        name = cell.metadata.nbgrader.grade_id
        grade = self.gradebook.find_grade(name, self.notebook_id, self.assignment_id, self.student_id)
        cell.metadata.nbgrader.update(score=grade.score, points=grade.max_score)
        unread = grade.needs_manual_grade and grade.auto_score is None and grade.manual_score is None
        self.marks.append(Mark(name, self.exercises.get(name, f"Written answer: {name}"), unread))


def named(page: str, marks: Sequence[Mark]) -> str:
    """A page of nbgrader's with the names of exercises, and with words for the points of what is unread."""
    for mark in marks:
        cell, title = re.escape(escape(mark.cell)), escape(mark.title).replace("\\", r"\\")
        page = re.sub(rf'(?<=<a href="#{cell}">)[^<]*', title, page, count=1)
        page = re.sub(rf"Grade cell: <code>{cell}</code>", f"<code>{title}</code>", page, count=1)
        if mark.unread:
            listed = rf'(<a href="#{cell}">[^<]*</a> \(){SCORE}'
            heading = rf'(?s)(<a name="{cell}"></a><div class="panel-heading">.{{,300}}?){SCORE}'
            for place in (listed, heading):
                page = re.sub(place, UNREAD, page, count=1)
    if unread := sum(mark.unread for mark in marks):
        answers = "1 answer" if unread == 1 else f"{unread} answers"
        page = re.sub(
            r"(Score: [^()<]*)(?=\)</h4>)", rf"\1, before a person has read {answers}", page, count=1
        )
    return page
