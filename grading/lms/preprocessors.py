"""What grading/ adds to nbgrader's own lists of preprocessors, and the lists themselves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from nbconvert.preprocessors import ClearMetadataPreprocessor
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader import preprocessors as nbg
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import determine_grade
from traitlets import Bool, Unicode, default

from gpulab.app.course.address import Address, address
from grading.core import texts
from grading.core.commands import ours
from grading.core.graft import graft
from grading.core.notebooks import is_test, read_released, with_stable_ids
from grading.core.verdicts import ExerciseVerdict, NotebookVerdict, Store, as_text
from grading.lms.hosted import open_elsewhere

Resources = dict[str, Any]


class StableIds(NbGraderPreprocessor):
    """Cell ids, which the text form lacks: the grade id, else a hash. Drops jupytext's own notes."""

    def preprocess(self, notebook: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        return with_stable_ids(notebook, resources["unique_key"]), resources


class OpenElsewhere(NbGraderPreprocessor):
    """Where the course has a public address, a notebook can be opened on other people's machines."""

    repository = Unicode(help="Where it lies in public, or nothing").tag(config=True)
    branch = Unicode(help="The branch of it that learners get").tag(config=True)

    @default("repository")
    def _repository(self) -> str:
        return address().repository

    @default("branch")
    def _branch(self) -> str:
        return address().branch

    def preprocess(self, notebook: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        lab, name = resources["nbgrader"]["assignment"], resources["nbgrader"]["notebook"]
        folder = f"{lab}/" if lab[0].isdigit() else ""  # a page beside the labs is of none
        place = Address(self.repository, self.branch)
        return open_elsewhere(notebook, f"labs/{folder}{name}.ipynb", place), resources


class ClearSolutions(nbg.ClearSolutions):
    """Where the marks stand in CUDA C++ (``// ### BEGIN SOLUTION``) the stub is a comment, which compiles."""

    def _replace_solution_region(self, cell: NotebookNode, language: str) -> bool:
        marked = re.search(rf"^\s*//.*{self.begin_solution_delimeter}", cell.source, re.MULTILINE)
        return bool(super()._replace_solution_region(cell, "java" if marked else language))


class Graft(NbGraderPreprocessor):
    """Keeps a learner's solution cells and takes all the rest from the released notebook."""

    labs = Unicode("labs", help="Folder of the released labs").tag(config=True)

    def preprocess(self, notebook: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        lab, name = resources["nbgrader"]["assignment"], resources["nbgrader"]["notebook"]
        released = read_released(Path(self.labs, lab, f"{name}.ipynb"))
        grafted = graft(released, notebook.cells, name, lab)
        return grafted.notebook, resources


class WriteVerdicts(NbGraderPreprocessor):
    """Stands where `Execute` stood: the outputs of test cells come from stored verdicts; nothing runs.

    An exercise without a verdict gets 0 points and says so, never full marks.
    """

    verdicts = Unicode("grading/verdicts", help="Folder of the stored verdicts").tag(config=True)
    labs = Unicode("labs", help="Folder of the released labs").tag(config=True)

    def preprocess(self, notebook: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        names = resources["nbgrader"]
        lab, name, student = names["assignment"], names["notebook"], names["student"]
        verdict = Store(Path(self.verdicts)).get(student, lab, name)
        digest = graft(notebook, notebook.cells, name, lab).digest
        if verdict is None or verdict.submission != digest:
            why = texts.NO_VERDICT.format(command=ours("grade", lab))
            verdict = NotebookVerdict("", digest, (), ungraded=why)
        notebook.metadata["gpulab"] = {"verdict": verdict.edition}
        resources["gpulab_ungraded"] = []
        for cell in notebook.cells:
            if is_test(cell) and not self._write(cell, verdict):
                resources["gpulab_ungraded"].append(cell.metadata.nbgrader.grade_id)
        return notebook, resources

    def _write(self, cell: NotebookNode, whole: NotebookVerdict) -> bool:
        """Give a test cell its outputs; says whether there is a verdict that needs no person."""
        mark = cell.metadata.nbgrader
        verdict = whole.by_cell(mark.grade_id)
        if verdict is None:
            reason = whole.ungraded or texts.NO_VERDICT_HERE
            verdict = ExerciseVerdict(mark.grade_id, mark.grade_id, (), ungraded=reason)
        points = min(max(verdict.points, 0.0), float(mark.points))
        cell.outputs = [
            new_output("stream", name="stdout", text=as_text(verdict, whole)),
            new_output("execute_result", data={"text/plain": f"{points:g}"}),
        ]
        return not (verdict.ungraded or verdict.doubt)


class SaveAutoGrades(nbg.SaveAutoGrades):
    """Where a person gave points, nbgrader asks for a person again. With `settled`, whoever runs it has asked
    already where the answer is another one, and only new automatic points ask again.

    It is one transaction for each cell: a run that is killed leaves no flag behind that nobody meant.
    """

    settled = Bool(False, help="Whether changed answers ask for a person already").tag(config=True)

    def _add_score(self, cell: NotebookNode, resources: Resources) -> None:
        name = cell.metadata["nbgrader"]["grade_id"]
        grade = self.gradebook.find_grade(name, self.notebook_id, self.assignment_id, self.student_id)
        if not self.settled or grade.manual_score is None:
            super()._add_score(cell, resources)
            return
        points, _ = determine_grade(cell, self.log)
        grade.needs_manual_grade = grade.needs_manual_grade or points != grade.auto_score
        grade.auto_score = points
        self.gradebook.db.commit()


class FlagUngraded(NbGraderPreprocessor):
    """After the scores are saved: what has no verdict, nor points of a person, asks for one in formgrader."""

    def preprocess(self, notebook: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        names = resources["nbgrader"]
        with Gradebook(names["db_url"]) as gradebook:
            for cell in resources.get("gpulab_ungraded", ()):
                grade = gradebook.find_grade(cell, names["notebook"], names["assignment"], names["student"])
                grade.needs_manual_grade = grade.needs_manual_grade or grade.manual_score is None
            gradebook.db.commit()
        return notebook, resources


RELEASE: list[type[NbGraderPreprocessor]] = [
    StableIds,
    OpenElsewhere,  # after the ids, which do not depend on where the course lies
    nbg.LockCells,
    ClearSolutions,
    nbg.ClearOutput,
    nbg.CheckCellMetadata,
    nbg.ComputeChecksums,
    nbg.SaveCells,
    nbg.ClearHiddenTests,
    nbg.ClearMarkScheme,
    nbg.ComputeChecksums,
    nbg.CheckCellMetadata,
]
SANITIZE: list[type[NbGraderPreprocessor]] = [
    Graft,
    nbg.ClearOutput,
    nbg.DeduplicateIds,
    nbg.OverwriteKernelspec,
    nbg.OverwriteCells,
    nbg.CheckCellMetadata,
]
AUTOGRADE: list[type[NbGraderPreprocessor]] = [
    WriteVerdicts,
    ClearMetadataPreprocessor,
    nbg.LimitOutput,
    SaveAutoGrades,
    FlagUngraded,
    nbg.AssignLatePenalties,
    nbg.CheckCellMetadata,
]
