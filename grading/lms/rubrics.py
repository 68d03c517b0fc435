"""What the written answers are graded by: criteria and sample answers, as data beside a lab's source.

`solutions/NN_name/rubric.toml` has a table for each written answer, by its grade id: `criteria`, whose points
sum to those of the cell, and `samples`, each with the criteria that it meets and why. What the solution cell
itself says is the model answer. In formgrader a grader finds all of it below the learner's answer; feedback
leaves it out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jupytext
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Unicode

from grading.core import pictures
from grading.core.course import Course, sources
from grading.core.errors import ReleaseError

FILE = "rubric.toml"
TAG = "rubric"


@dataclass(frozen=True)
class Criterion:
    """One thing that earns points."""

    points: float
    text: str


@dataclass(frozen=True)
class Sample:
    """An answer as a learner might write it, the numbers (from 1) of the criteria that it meets, and why."""

    meets: tuple[int, ...]
    answer: str
    why: str


@dataclass(frozen=True)
class Rubric:
    """What one written answer is graded by; `model` is the text of its solution cell."""

    cell: str  # grade id
    points: float
    model: str
    criteria: tuple[Criterion, ...] = ()
    samples: tuple[Sample, ...] = ()

    def worth(self, sample: Sample) -> float:
        """The points of a sample answer."""
        return sum(self.criteria[number - 1].points for number in sample.meets)

    def markdown(self) -> str:
        """As a grader reads it."""
        parts = [f"**For the grader · {self.points:g} points**"]
        parts += [f"{i}. **{c.points:g}** · {c.text}" for i, c in enumerate(self.criteria, 1)]
        for sample in self.samples:
            met = " and ".join(map(str, sample.meets)) or "none"
            head = f"*{self.worth(sample):g} of {self.points:g} points (meets {met}):*"
            parts.append(f"{head} {sample.why}\n\n" + _quoted(sample.answer))
        parts.append("*What the lab's source says:*\n\n" + _quoted(self.model))
        return "\n\n".join(parts)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())


def of_lab(course: Course, lab: str) -> dict[str, dict[str, Rubric]]:
    """The rubrics of a lab, by notebook and grade id. Raises ReleaseError for a file that fits no lab."""
    return of_folder(course.solutions / lab)


def of_folder(folder: Path) -> dict[str, dict[str, Rubric]]:
    """The same for a folder of `solutions/`."""
    path = folder / FILE
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        data = {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ReleaseError(f"{path} is no TOML: {error}") from None
    found: dict[str, dict[str, Rubric]] = {}
    for source in sources(folder):
        for cell, points, model in _written(jupytext.read(source)):
            rubric = _rubric(path, cell, points, model, data.pop(cell, {}))
            found.setdefault(source.stem, {})[cell] = rubric
    if data:
        raise ReleaseError(f"{path}: there is no written answer '{next(iter(data))}' in {folder.name}")
    return found


def _written(notebook: NotebookNode) -> Iterator[tuple[str, float, str]]:
    """The cells that a person grades: grade id, points, what the source says."""
    for cell in notebook.cells:
        mark = cell.metadata.get("nbgrader", {})
        if mark.get("grade") and mark.get("solution"):
            yield mark["grade_id"], float(mark["points"]), cell.source


def _rubric(path: Path, cell: str, points: float, model: str, data: Mapping[str, Any]) -> Rubric:
    try:
        criteria = tuple(Criterion(float(c["points"]), str(c["text"])) for c in data.get("criteria", ()))
        samples = tuple(
            Sample(tuple(map(int, s["meets"])), str(s["answer"]), str(s["why"]))
            for s in data.get("samples", ())
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ReleaseError(
            f"{path}: [{cell}] has criteria with points and text, and samples with meets, answer and why; "
            f"{error} is missing or none of these"
        ) from None
    total = sum(c.points for c in criteria)
    if criteria and abs(total - points) > 1e-9:
        raise ReleaseError(f"{path}: the criteria of [{cell}] have {total:g} points, the cell has {points:g}")
    for sample in samples:
        if wrong := [n for n in sample.meets if not 1 <= n <= len(criteria)]:
            raise ReleaseError(f"{path}: a sample of [{cell}] meets criterion {wrong[0]}, which is not there")
    return Rubric(cell, points, model, criteria, samples)


class ShowRubric(NbGraderPreprocessor):
    """Below each written answer of an autograded notebook, what a grader needs; formgrader shows it."""

    solutions = Unicode("solutions", help="Folder of the labs' sources").tag(config=True)

    def preprocess(
        self, notebook: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        lab, name = resources["nbgrader"]["assignment"], resources["nbgrader"]["notebook"]
        known = remembered(Path(self.solutions, lab)).get(name, {})
        cells = []
        for cell in notebook.cells:
            cells.append(cell)
            rubric = known.get(cell.metadata.get("nbgrader", {}).get("grade_id", ""))
            if rubric:
                note = pictures.note(cell.get("attachments", {}))
                text = "\n\n".join(filter(None, [note, rubric.markdown()]))
                shown = new_markdown_cell(text, metadata={"tags": [TAG]})
                shown["id"] = f"{rubric.cell[:48]}-rubric"
                cells.append(shown)
        notebook.cells = cells
        return notebook, resources


class HideRubric(NbGraderPreprocessor):
    """Feedback is for learners."""

    def preprocess(
        self, notebook: NotebookNode, resources: dict[str, Any]
    ) -> tuple[NotebookNode, dict[str, Any]]:
        notebook.cells = [cell for cell in notebook.cells if TAG not in cell.metadata.get("tags", ())]
        return notebook, resources


_known: dict[tuple[Path, tuple[int, ...]], dict[str, dict[str, Rubric]]] = {}


def remembered(folder: Path) -> dict[str, dict[str, Rubric]]:
    """`of_folder`, read once for a class; again where a file has changed."""
    changes = tuple(p.stat().st_mtime_ns for p in [*sources(folder), *folder.glob(FILE)])
    if (folder, changes) not in _known:
        _known[folder, changes] = of_folder(folder)
    return _known[folder, changes]
