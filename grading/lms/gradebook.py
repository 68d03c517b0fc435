"""The one writer to nbgrader's gradebook: verdicts → autograded notebooks, scores, feedback.

nbgrader's own converters do it; no learner's line runs here. Not for threads: nbgrader changes directory.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import os
import re
import shutil
import sysconfig
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import nbformat
from nbconvert.exporters import NotebookExporter
from nbconvert.writers import FilesWriter
from nbformat import NotebookNode
from nbgrader import api as nbgrader
from nbgrader.api import (
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    GradeCell,
    MissingEntry,
    SubmittedAssignment,
    SubmittedNotebook,
)
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.converters.base import BaseConverter
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import SaveCells
from sqlalchemy import create_engine, func, select
from sqlalchemy.exc import SQLAlchemyError
from traitlets.config import Config

from grading.core import texts
from grading.core.course import GRADEBOOK, Course
from grading.core.errors import GradingError
from grading.core.verdicts import NotebookVerdict, write_whole
from grading.lms import late
from grading.lms.feedback import FeedbackExporter
from grading.lms.nbgrader import nbgrader_config
from grading.lms.roster import Student

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


def remember_place(course: Course) -> None:
    """Note the database elsewhere before the first grade goes there, so that later runs use no other one and
    `forget` finds it."""
    course.home.mkdir(parents=True, exist_ok=True)
    if course.database and course.place not in (known := course.known_databases()):
        write_whole(course.databases, "\n".join([*known, course.place, ""]))


def register(course: Course, lab: str, notebooks: dict[str, NotebookNode]) -> None:
    """Tell the gradebook of a lab's cells and points, as `nbgrader generate_assignment` does."""
    url = course.db_url
    remember_place(course)
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
def writable(course: Course, advice: str = texts.AGAIN) -> Iterator[None]:
    """The database's own complaints, such as a full disk, in one line with what to do."""
    try:
        yield
    except SQLAlchemyError as error:
        why = str(getattr(error, "orig", None) or error).splitlines()[0]
        raise GradebookError(f"{course.gradebook_name}: {why}. {advice}") from error


def check(course: Course, advice: str = texts.AGAIN) -> None:
    """Whether a database elsewhere answers, before an hour is spent on verdicts. Raises GradebookError."""
    if course.database:
        try:
            with writable(course, advice):
                engine = create_engine(course.db_url)
                engine.connect().close()
                engine.dispose()
        except ImportError as error:
            raise GradebookError(
                f"{course.gradebook_name}: its driver is not installed ({error.name}): "
                "pip install 'psycopg[binary]'"
            ) from error


def check_place(course: Course) -> None:
    """Whether this is the gradebook that the class's grades are in. Raises GradebookError.

    In another one, points that persons gave would be missing, and the tables would lose them without a word.
    """
    elsewhere = course.known_databases()
    at_home = replace(course, database="")
    if elsewhere and (not course.database or course.place not in elsewhere):
        raise GradebookError(
            f"the grades of this class are in {elsewhere[-1]}: add --gradebook with its URL, or set "
            f"{GRADEBOOK}.\nIf that database is gone for good, delete its line in {course.databases}"
        )
    if course.database and not elsewhere and course.gradebook.exists() and labs(at_home):
        raise GradebookError(
            f"the grades of this class are in {course.gradebook}: leave out --gradebook (and {GRADEBOOK}), "
            "or, to begin again in the other one without the points that persons gave, move that file away"
        )


@dataclass(frozen=True)
class Held:
    """What the gradebook holds of one graded cell of one student.

    `manual` is what a person gave, which counts in place of `auto`; `extra` comes on top. `waits` says that a
    person must look at it. `late` is taken off the whole notebook, and is the same in all of its cells.
    """

    student: str
    notebook: str
    cell: str  # grade id
    of: float
    auto: float | None
    manual: float | None
    extra: float | None
    waits: bool
    late: float

    @property
    def points(self) -> float:
        """What counts, as nbgrader counts it."""
        given = self.auto if self.manual is None else self.manual
        return 0.0 if given is None else given + (self.extra or 0.0)


SIGNATURE = "\n<!-- made of {digest} -->\n"


def _contents(course: Course, lab: str) -> dict[tuple[str, str], str]:
    """What feedback tells of a notebook from the gradebook, as a digest, by student and notebook."""
    said: dict[tuple[str, str], list[str]] = {}
    comments = (
        select(SubmittedAssignment.student_id, nbgrader.Notebook.name, BaseCell.name, Comment.comment)
        .select_from(Comment)
        .join(BaseCell, Comment.cell_id == BaseCell.id)
        .join(SubmittedNotebook, Comment.notebook_id == SubmittedNotebook.id)
        .join(nbgrader.Notebook, SubmittedNotebook.notebook_id == nbgrader.Notebook.id)
        .join(SubmittedAssignment, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(nbgrader.Assignment, SubmittedAssignment.assignment_id == nbgrader.Assignment.id)
        .where(nbgrader.Assignment.name == lab)
    )
    for cell in held(course, lab):
        said.setdefault((cell.student, cell.notebook), []).append(repr(cell))
    with writable(course), Gradebook(course.db_url) as book:
        for student, notebook, *comment in book.db.execute(comments):
            said.setdefault((student, notebook), []).append(repr(comment))
    return {
        whose: hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()[:16]
        for whose, parts in said.items()
    }


def update_feedback(course: Course, lab: str, fresh: Collection[str] = ()) -> list[str]:
    """Make the pages again that do not tell what the gradebook says by now: points, comments, penalties.

    Each page ends with a digest of what it was made of. Those of `fresh` students were written just now.
    Returns why pages could not be made, a line for each student.
    """
    writer: Writer | None = None
    problems: dict[str, str] = {}
    ends = {whose: SIGNATURE.format(digest=digest) for whose, digest in _contents(course, lab).items()}
    pages = {
        (student, name): course.feedback / student / lab / f"{name}.html"
        for student, name in ends
        if (course.autograded / student / lab / f"{name}.ipynb").is_file()
    }
    old = {whose[0] for whose, page in pages.items() if not _ends_with(page, ends[whose])}
    for student in sorted(old - set(fresh)):
        writer = writer or Writer(course, lab)
        try:
            writer.feedback(student)
        except GradebookError:
            raise
        except GradingError as error:  # of this student's notebook: the others go on
            problems[student] = f"the feedback of {student} in {lab} is not up to date: {error}"
    for whose, page in pages.items():
        if whose[0] in old and whose[0] not in problems and page.is_file():
            with page.open("a", encoding="utf-8") as file:
                file.write(ends[whose])
    return list(problems.values())


def _ends_with(page: Path, text: str) -> bool:
    try:
        with page.open("rb") as file:
            file.seek(-len(text), os.SEEK_END)
            return file.read() == text.encode()
    except OSError:
        return False


def held(course: Course, lab: str) -> list[Held]:
    """All graded cells of a lab of everybody who handed it in, in the order of students and of cells."""
    graded = (
        select(
            SubmittedAssignment.student_id,
            nbgrader.Notebook.name,
            GradeCell.name,
            GradeCell.max_score,
            Grade.auto_score,
            Grade.manual_score,
            Grade.extra_credit,
            Grade.needs_manual_grade,
            func.coalesce(SubmittedNotebook.late_submission_penalty, 0.0),
        )
        .select_from(Grade)
        .join(GradeCell, Grade.cell_id == GradeCell.id)
        .join(SubmittedNotebook, Grade.notebook_id == SubmittedNotebook.id)
        .join(nbgrader.Notebook, SubmittedNotebook.notebook_id == nbgrader.Notebook.id)
        .join(SubmittedAssignment, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(nbgrader.Assignment, SubmittedAssignment.assignment_id == nbgrader.Assignment.id)
        .where(nbgrader.Assignment.name == lab)
        .order_by(SubmittedAssignment.student_id, nbgrader.Notebook.name)
    )
    with writable(course), Gradebook(course.db_url) as book:
        return [Held(*row) for row in book.db.execute(graded)]


def students(course: Course, lab: str) -> set[str]:
    """Of whom the gradebook holds a lab."""
    handed_in = (
        select(SubmittedAssignment.student_id)
        .join(nbgrader.Assignment, SubmittedAssignment.assignment_id == nbgrader.Assignment.id)
        .where(nbgrader.Assignment.name == lab)
    )
    with writable(course), Gradebook(course.db_url) as book:
        return set(book.db.scalars(handed_in))


def labs(course: Course) -> list[str]:
    """The labs of which the gradebook holds anything handed in."""
    with writable(course), Gradebook(course.db_url) as book:
        return sorted(a.name for a in book.assignments if a.submissions)


def people(course: Course) -> dict[str, Student]:
    """What the gradebook knows of students, by id."""
    with writable(course), Gradebook(course.db_url) as book:
        return {
            s.id: Student(
                s.id,
                canvas=s.lms_user_id or "",
                name=" ".join(filter(None, (s.first_name, s.last_name if s.last_name != s.id else ""))),
                email=s.email or "",
            )
            for s in book.students
        }


def introduce(course: Course, known: Mapping[str, Student]) -> None:
    """Tell the gradebook the names of those who handed in, so that formgrader and later runs know them.

    Without a name the id takes its place, because formgrader would show "None, None".
    """
    with writable(course), Gradebook(course.db_url) as book:
        for student in book.students:
            who = known.get(student.id, Student(student.id))
            first, last = who.first_and_last
            if last or not student.last_name:
                student.first_name, student.last_name = first, last or student.id
            student.email = who.email or student.email
            student.lms_user_id = who.canvas or student.lms_user_id
        book.db.commit()


def is_written(course: Course, lab: str, graded: Graded, known: Iterable[Held]) -> bool:
    """Whether the gradebook, as `held` found it of this student, and the feedback already say what these
    verdicts say."""
    auto = {(cell.notebook, cell.cell): cell.auto for cell in known}
    for name, verdict in graded.verdicts.items():
        for exercise in verdict.exercises:
            points = auto.get((name, exercise.cell))
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
        config.SaveAutoGrades.settled = True
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
            before = self._before(graded)
            shutil.rmtree(folder, ignore_errors=True)
            # An old page beside new points would look finished, if we were killed between the steps below.
            shutil.rmtree(self.course.feedback / graded.student / self.lab, ignore_errors=True)
            folder.mkdir(parents=True)
            for name, notebook in graded.notebooks.items():
                nbformat.write(notebook, folder / f"{name}.ipynb")
            if graded.timestamp:
                _copy_from_exchange(graded.timestamp.parent, folder)
            autograde, feedback = self.steps
            self._ask_again(graded, before)
            self._convert(autograde, graded.student)
            late.apply(self.course, self.lab, {graded.student})
            self._convert(feedback, graded.student)
        finally:
            shutil.rmtree(self.staged / graded.student, ignore_errors=True)

    def _before(self, graded: Graded) -> dict[str, NotebookNode]:
        """The notebooks that the gradebook's points are about, where they can be read.

        nbgrader takes them away before it writes new ones. If a run was killed between the two, those that it
        had staged are the ones.
        """
        known: dict[str, NotebookNode] = {}
        for name in graded.notebooks:
            for folder in (self.staged, self.course.autograded):
                with contextlib.suppress(OSError, ValueError, nbformat.reader.NotJSONError):
                    known[name] = nbformat.read(
                        folder / graded.student / self.lab / f"{name}.ipynb", as_version=4
                    )
        return known

    def _ask_again(self, graded: Graded, before: Mapping[str, NotebookNode]) -> None:
        """Ask for a person where one gave points to another answer than this one.

        This comes before anything else changes, so that no run that is killed makes old points final.
        """
        with writable(self.course), Gradebook(self.course.db_url) as book:
            for grade in _by_hand(book, self.lab, graded.student):
                old, new = before.get(grade.notebook.name), graded.notebooks.get(grade.notebook.name)
                if not (old and new and _answers(old, grade.name) == _answers(new, grade.name)):
                    grade.needs_manual_grade = True
            book.db.commit()

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


def _by_hand(book: Gradebook, lab: str, student: str) -> list[Grade]:
    """The grades of one student in which a person has a part."""
    try:
        submission = book.find_submission(lab, student)
    except MissingEntry:
        return []
    return [g for notebook in submission.notebooks for g in notebook.grades if g.manual_score is not None]


def _answers(notebook: NotebookNode, cell: str) -> list[object]:
    """What a grade of this cell is about: its own text and pictures, or, of a test cell, all code answers."""
    solutions = [c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("solution")]
    own = [c for c in solutions if c.metadata.nbgrader.grade_id == cell]
    return [(c.source, c.get("attachments")) for c in own or solutions if own or c.cell_type == "code"]


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
    """nbgrader's log into a string; only errors of it are ever shown.

    Its gradebook logs under tornado's name when it takes back what a full disk or a dead database refused.
    """
    stream = io.StringIO()
    with contextlib.ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SQLAlchemy's, about nbgrader's own order of inserting
        for name in ("traitlets", "tornado.application"):
            stack.enter_context(_into(stream, logging.getLogger(name)))
        yield stream


@contextlib.contextmanager
def _into(stream: io.StringIO, log: logging.Logger) -> Iterator[None]:
    """The errors of one log alone, and nowhere else."""
    before, level, spread = log.handlers[:], log.level, log.propagate
    log.handlers, log.propagate = [logging.StreamHandler(stream)], False
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.handlers, log.propagate = before, spread
        log.setLevel(level)
