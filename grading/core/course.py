"""Where a course keeps its files, and what nbgrader must know of it. All paths of grading/ come from here."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from grading.core.errors import GradingError

ROOT = Path(__file__).resolve().parents[2]
GRADEBOOK = "GPULAB_GRADEBOOK"  # an environment variable: nbgrader's own commands read it, too
EXAMPLE = "postgresql://user:password@host/database"


@dataclass(frozen=True)
class Course:
    """The folders of one course. `home` holds everything that belongs to one class of students.

    `database` is the URL of a gradebook elsewhere, such as ``postgresql://user:password@host/name``; without
    one it is a file of SQLite at home.
    """

    root: Path = ROOT
    home: Path = ROOT / "grading"
    database: str = field(default_factory=lambda: os.environ.get(GRADEBOOK, ""), repr=False)

    @property
    def solutions(self) -> Path:
        return self.root / "solutions"

    @property
    def labs(self) -> Path:
        return self.root / "labs"

    @property
    def submitted(self) -> Path:
        return self.home / "submitted"

    @property
    def autograded(self) -> Path:
        return self.home / "autograded"

    @property
    def feedback(self) -> Path:
        return self.home / "feedback"

    @property
    def verdicts(self) -> Path:
        return self.home / "verdicts"

    @property
    def gradebook(self) -> Path:
        return self.home / "gradebook.db"

    @property
    def db_url(self) -> str:
        """The gradebook as SQLAlchemy and nbgrader want it. Raises GradingError for what is no URL."""
        if not self.database:
            return f"sqlite:///{self.gradebook}"
        try:
            url = make_url(self.database)
        except ArgumentError as error:
            raise GradingError(f"the gradebook's URL cannot be read: write it as {EXAMPLE}") from error
        kind = url.drivername.partition("+")[0]
        if kind not in ("postgres", "postgresql", "sqlite"):
            raise GradingError(f"a gradebook is in SQLite or PostgreSQL, not {kind}: write {EXAMPLE}")
        if url.drivername in ("postgres", "postgresql"):
            url = url.set(drivername="postgresql+psycopg")
        return str(url.render_as_string(hide_password=False))

    @property
    def gradebook_name(self) -> str:
        """What messages call the gradebook: no password in it."""
        return make_url(self.db_url).render_as_string() if self.database else str(self.gradebook)

    @property
    def place(self) -> str:
        """Which database the gradebook is in: its URL without user, password and options."""
        url = make_url(self.db_url)
        host = url.host or url.query.get("host", "")
        return f"{url.get_backend_name()}://{host}{f':{url.port}' if url.port else ''}/{url.database or ''}"

    @property
    def databases(self) -> Path:
        """Names the databases elsewhere that this class was graded into, a line each."""
        return self.home / "databases.txt"

    def known_databases(self) -> list[str]:
        """The places of those databases."""
        return self.databases.read_text(encoding="utf-8").splitlines() if self.databases.exists() else []

    @property
    def grades(self) -> Path:
        return self.home / "grades.csv"

    @property
    def class_page(self) -> Path:
        return self.home / "class.html"

    @property
    def put_aside(self) -> Path:
        """Where a table goes that has the name of our `grades` and other columns."""
        return self.home / "grades-before.csv"

    @property
    def exported(self) -> Path:
        """Where `nbgrader export` writes; its own default is the name of our `grades`."""
        return self.home / "grades-nbgrader.csv"

    @property
    def secret(self) -> Path:
        return self.home / "secret"

    @property
    def roster(self) -> Path:
        return self.home / "roster.csv"

    @property
    def rosters(self) -> Path:
        """Names the roster that each lab was graded with, where it is another file."""
        return self.home / "rosters.json"

    @property
    def titles(self) -> Path:
        """What Canvas calls the assignment of each lab."""
        return self.home / "titles.json"

    @property
    def unfinished(self) -> Path:
        """Names the runs that were stopped before their end, a line each: what `grade` was given."""
        return self.home / "unfinished.txt"

    def unfinished_runs(self) -> list[str]:
        return self.unfinished.read_text(encoding="utf-8").splitlines() if self.unfinished.exists() else []

    @property
    def senders(self) -> Path:
        """What an LMS called each student's file or folder."""
        return self.home / "senders"

    @property
    def unread(self) -> Path:
        """Notes of files that cannot be read and replaced no earlier one: `grading/lms/newer.py`."""
        return self.home / "unread"

    @property
    def regrades(self) -> Path:
        """Requests of students, and what came of them."""
        return self.home / "regrades"

    @property
    def settings(self) -> Path:
        """Due dates, penalties, retention: `grading/lms/settings.py`."""
        return self.home / "course.toml"

    def relative(self, path: Path) -> str:
        """A path as nbgrader wants it: seen from the root (it mishandles absolute ones)."""
        return os.path.relpath(path, self.root)

    def lab_names(self) -> list[str]:
        """Every folder of solutions/ that holds a notebook's source, in order."""
        return [p.name for p in sorted(self.solutions.glob("[0-9]*")) if sources(p)]

    def whole_name(self, lab: str) -> str:
        """That of the lab with this number, ``04``; what is no number of one lab stays as it is."""
        found = [name for name in self.lab_names() if name.partition("_")[0] == lab]
        return found[0] if len(found) == 1 else lab


def sources(folder: Path) -> list[Path]:
    """The notebooks of one lab, as text."""
    return sorted(folder.glob("*.py"))
