"""What a class has handed in, as the judge's work: a lab, and a task for each notebook of each student."""

from __future__ import annotations

import pickle
import zlib
from dataclasses import dataclass

from nbformat import NotebookNode

from grading.core.graft import Graft
from grading.core.notebooks import Question, grade_id
from grading.core.verdicts import NotebookVerdict


@dataclass(frozen=True)
class Lab:
    """A released lab, as the judge sees it."""

    name: str
    notebooks: dict[str, NotebookNode]
    questions: dict[str, tuple[Question, ...]]

    @property
    def marks(self) -> dict[str, frozenset[str]]:
        """The grade ids in each notebook, by which one is known whatever its file is called."""
        return {
            name: frozenset(mark for cell in notebook.cells if (mark := grade_id(cell)))
            for name, notebook in self.notebooks.items()
        }


@dataclass
class Task:
    """One notebook of one student on its way to a verdict."""

    student: str
    notebook: str
    packed: bytes  # the graft: a class of notebooks would fill the memory
    key: str
    verdict: NotebookVerdict | None = None
    known: bool = False  # the verdict was in the store
    missing: bool = False  # it was not handed in, and another notebook of the lab was

    @property
    def graft(self) -> Graft:
        """The released notebook with the answers in it."""
        return pickle.loads(zlib.decompress(self.packed))
