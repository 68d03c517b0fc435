"""The one writer to nbgrader's gradebook: verdicts → autograded notebooks, scores, feedback, grades.csv.

nbgrader's own converters do it; no learner's line runs here. Not for threads: nbgrader changes directory.
"""

from __future__ import annotations

import contextlib
import csv
import io
import logging
import os
import re
import shutil
import sysconfig
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import nbformat
from nbconvert.exporters import NotebookExporter
from nbconvert.writers import FilesWriter
from nbformat import NotebookNode
from nbgrader import api as nbgrader
from nbgrader.api import BaseCell, Grade, Gradebook, SubmittedAssignment, SubmittedNotebook
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.converters.base import BaseConverter
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import SaveCells
from sqlalchemy import create_engine, func, select
from sqlalchemy.exc import SQLAlchemyError
from traitlets.config import Config

from grading.core import texts
from grading.core.course import Course
from grading.core.errors import GradingError
from grading.core.verdicts import NotebookVerdict, write_whole
from grading.lms import late
from grading.lms.exports import as_csv
from grading.lms.feedback import FeedbackExporter
from grading.lms.nbgrader import nbgrader_config

# Each of nbgrader's preprocessors opens the gradebook anew. SQLAlchemy keeps what it compiles by engine: with
# one for each opening all is compiled again and again, and its caches fill with what nobody will ask for.
nbgrader.create_engine = lru_cache(maxsize=1)(nbgrader.create_engine)


@dataclass(frozen=True)
class Graded:
    """A student's grafted notebooks and their verdicts, by notebook name."""

    student: str
    notebooks: dict[str, NotebookNode]
    verdicts: dict[str, NotebookVerdict]
    timestamp: Path | None = None


def register(course: Course, lab: str, notebooks: dict[str, NotebookNode]) -> None:
    """Tell the gradebook of a lab's cells and points, as `nbgrader generate_assignment` does."""
    url = course.db_url
    course.home.mkdir(parents=True, exist_ok=True)
    scripts = sysconfig.get_path("scripts")
    if scripts not in os.environ["PATH"].split(
        os.pathsep
    ):  # nbgrader calls alembic by name to make a gradebook
        os.environ["PATH"] = os.pathsep.join([scripts, os.environ["PATH"]])
    with writable(course):
        with Gradebook(url) as book:
            book.update_or_create_assignment(lab)
        for name, notebook in notebooks.items():
            resources = {"nbgrader": {"notebook": name, "assignment": lab, "student": ".", "db_url": url}}
            try:
                with _quiet():
                    SaveCells(config=Config())(nbformat.from_dict(notebook), resources)
            except RuntimeError as error:
                raise GradingError(
                    f"the cells of {lab}/{name} are not those that the class was graded with: {error}\n"
                    "give the changed lab a new name, or take back the change"
                ) from error


class GradebookError(GradingError):
    """The gradebook itself cannot be read or written."""


@contextlib.contextmanager
def writable(course: Course) -> Iterator[None]:
    """The database's own complaints, such as a full disk, in one line."""
    try:
        yield
    except SQLAlchemyError as error:
        why = str(getattr(error, "orig", None) or error).splitlines()[0]
        raise GradebookError(f"{course.gradebook_name}: {why}. {texts.AGAIN}") from error


def check(course: Course) -> None:
    """Whether a database elsewhere answers, before an hour is spent on verdicts. Raises GradebookError."""
    if course.database:
        try:
            with writable(course):
                engine = create_engine(course.db_url)
                engine.connect().close()
                engine.dispose()
        except ImportError as error:
            raise GradebookError(
                f"{course.gradebook_name}: its driver is not installed ({error.name}): "
                "pip install 'psycopg[binary]'"
            ) from error


Held = dict[tuple[str, str, str], float | None]  # points by student, notebook and test cell


def held(course: Course, lab: str) -> Held:
    """What the gradebook holds of a lab: the automatic points of each cell that has any."""
    graded = (
        select(SubmittedAssignment.student_id, nbgrader.Notebook.name, BaseCell.name, Grade.auto_score)
        .select_from(Grade)
        .join(BaseCell, Grade.cell_id == BaseCell.id)
        .join(SubmittedNotebook, Grade.notebook_id == SubmittedNotebook.id)
        .join(nbgrader.Notebook, SubmittedNotebook.notebook_id == nbgrader.Notebook.id)
        .join(SubmittedAssignment, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(nbgrader.Assignment, SubmittedAssignment.assignment_id == nbgrader.Assignment.id)
        .where(nbgrader.Assignment.name == lab)
    )
    with writable(course), Gradebook(course.db_url) as book:
        rows = book.db.execute(graded).all()
    return {(student, notebook, cell): points for student, notebook, cell, points in rows}


def is_written(course: Course, lab: str, graded: Graded, known: Held) -> bool:
    """Whether the gradebook, as `held` found it, and the feedback already say what these verdicts say."""
    for name, verdict in graded.verdicts.items():
        for exercise in verdict.exercises:
            points = known.get((graded.student, name, exercise.cell))
            if points is None or abs(points - exercise.points) > 0.005:
                return False
    for name, verdict in graded.verdicts.items():
        path = course.autograded / graded.student / lab / f"{name}.ipynb"
        try:
            if nbformat.read(path, as_version=4).metadata["gpulab"]["verdict"] != verdict.edition:
                return False
        except (OSError, ValueError, KeyError, nbformat.reader.NotJSONError):
            return False
        if not (course.feedback / graded.student / lab / f"{name}.html").exists():
            return False
    return True


@dataclass(frozen=True)
class Standing:
    """What a student has in a lab by the gradebook, persons' points included; `waiting` for some of them."""

    points: float
    of: float
    waiting: bool


def standings(course: Course, lab: str) -> dict[str, Standing]:
    """Everybody's points in a lab, late penalties taken off."""
    penalties = (
        select(SubmittedAssignment.student_id, func.sum(SubmittedNotebook.late_submission_penalty))
        .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(nbgrader.Assignment, SubmittedAssignment.assignment_id == nbgrader.Assignment.id)
        .where(nbgrader.Assignment.name == lab)
        .group_by(SubmittedAssignment.student_id)
    )
    with writable(course), Gradebook(course.db_url) as book:
        late = {student: penalty or 0.0 for student, penalty in book.db.execute(penalties)}
        rows = book.submission_dicts(lab)
    return {
        row["student"]: Standing(
            round(max(0.0, row["score"] - late.get(row["student"], 0.0)), 2),
            row["max_score"],
            bool(row["needs_manual_grade"]),
        )
        for row in rows
    }


class Writer:
    """Writes the students of one lab, one after the other.

    nbgrader's converters go from student to student with one exporter, and so do we: to make one anew
    compiles all templates of the feedback each time.
    """

    def __init__(self, course: Course, lab: str):
        self.course, self.lab = course, lab
        self.staged = course.home / "staged"
        config = nbgrader_config(course)
        config.CourseDirectory.submitted_directory = course.relative(self.staged)
        config.CourseDirectory.assignment_id = lab
        self.steps = []
        with _quiet():
            for converter, exporter in ((Autograde, NotebookExporter), (GenerateFeedback, FeedbackExporter)):
                step = converter(coursedir=CourseDirectory(config=config), config=config)
                step.force = True
                step.writer = FilesWriter(parent=step, config=step.config)
                step.exporter = exporter(parent=step, config=step.config)
                for preprocessor in step.preprocessors:
                    step.exporter.register_preprocessor(preprocessor)
                self.steps.append(step)

    def write(self, graded: Graded) -> None:
        """Put one student's verdicts into the gradebook and make the feedback."""
        folder = self.staged / graded.student / self.lab
        try:
            shutil.rmtree(folder, ignore_errors=True)
            # An old page beside new points would look finished, if we were killed between the steps below.
            shutil.rmtree(self.course.feedback / graded.student / self.lab, ignore_errors=True)
            folder.mkdir(parents=True)
            for name, notebook in graded.notebooks.items():
                nbformat.write(notebook, folder / f"{name}.ipynb")
            if graded.timestamp:
                _copy_from_exchange(graded.timestamp.parent, folder)
            autograde, feedback = self.steps
            self._convert(autograde, graded.student)
            late.apply(self.course, self.lab, {graded.student})
            self._convert(feedback, graded.student)
        finally:
            shutil.rmtree(self.staged / graded.student, ignore_errors=True)

    def feedback(self, student: str) -> None:
        """Make a student's feedback again, from the gradebook as it is."""
        if (self.course.autograded / student / self.lab).is_dir():
            self._convert(self.steps[1], student)

    def _convert(self, step: BaseConverter, student: str) -> None:
        """What nbgrader's `start` does after it has made writer and exporter."""
        with _quiet() as log, contextlib.chdir(self.course.root):
            step.coursedir.student_id = student
            try:
                step.init_notebooks()
                step.convert_notebooks()
            except OSError:
                raise
            except Exception as error:  # nbgrader raises what it caught, and logs the cause
                raise _explained(self.course, student, log.getvalue()) from error
            finally:
                step.exporter._nb_metadata.clear()  # of each notebook, by its path: for as long as it lives


def _copy_from_exchange(source: Path, folder: Path) -> None:
    """What nbgrader's exchange put beside a notebook: without the secret no feedback goes back through it."""
    for name in (late.STAMP, "submission_secret.txt"):
        if (path := source / name).is_file() and not path.is_symlink():
            shutil.copy(path, folder / name)


def _explained(course: Course, student: str, log: str) -> GradingError:
    """nbgrader's log in one line: the last exception in it."""
    causes = re.findall(r"^(?:[\w.]+)?(?:Error|Exception): .*$|^OSError.*$", log, re.M)
    why = causes[-1] if causes else "no reason in its log"
    if re.search(r"database|disk|space|too large|\[Errno|OperationalError|InterfaceError", why):
        return GradebookError(f"{course.gradebook_name}: {why}. {texts.AGAIN}")
    return GradingError(f"nbgrader refused {student}: {why}")


@contextlib.contextmanager
def _quiet() -> Iterator[io.StringIO]:
    """nbgrader's log into a string; only errors of it are ever shown."""
    log, stream = logging.getLogger("traitlets"), io.StringIO()
    handler = logging.StreamHandler(stream)
    before, level, spread = log.handlers[:], log.level, log.propagate
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SQLAlchemy's, about nbgrader's own order of inserting
            yield stream
    finally:
        log.handlers, log.propagate = before, spread
        log.setLevel(level)


def read_grades(course: Course) -> list[dict[str, str]]:
    """The rows of grades.csv; none of a file that has other columns."""
    if not course.grades.exists() or not _is_ours(course.grades):
        return []
    with course.grades.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _is_ours(table: Path) -> bool:
    with table.open(newline="", encoding="utf-8", errors="replace") as file:
        return {"student", "lab"} <= set(csv.DictReader(file).fieldnames or ())


def write_grades(course: Course, lab: str, rows: Sequence[dict[str, object]]) -> None:
    """grades.csv: one row per student and lab; rows of other labs stay.

    A file of that name with other columns is somebody's: it is put aside.
    """
    fields = ["student", "lab", "points", "late", "of", "state", "reason"]
    kept: list[dict[str, object]] = [dict(row) for row in read_grades(course) if row["lab"] != lab]
    if course.grades.exists() and not _is_ours(course.grades):
        course.grades.replace(course.put_aside)
    ordered = sorted([*kept, *rows], key=lambda r: (str(r["lab"]), str(r["student"])))
    write_whole(course.grades, as_csv(fields, ordered))
