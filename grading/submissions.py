"""Finding who handed in what. Three layouts: nbgrader's, one folder per student, one file per student."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from grading import texts
from grading.errors import GradingError

STUDENT = re.compile(r"[A-Za-z0-9._@-]{1,64}")


@dataclass(frozen=True)
class Submission:
    """One student's files of one lab: notebook name → path. `refused` says why it is not looked at."""

    student: str
    notebooks: dict[str, Path]
    folder: Path
    refused: str = ""


def find_submissions(folder: Path, lab: str, notebooks: list[str], roster: Path) -> list[Submission]:
    """All submissions under `folder`, by student, in order.

    ``folder/STUDENT/LAB/NAME.ipynb`` (nbgrader), ``folder/STUDENT/NAME.ipynb``, or ``folder/STUDENT.ipynb``.
    """
    if not folder.is_dir():
        raise GradingError(f"no folder {folder}: give the one that holds the submissions")
    known = read_roster(roster)
    found = []
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(".") or not (entry.is_dir() or entry.suffix == ".ipynb"):
            continue
        student = entry.stem if entry.suffix == ".ipynb" else entry.name
        found.append(_submission(student, entry, lab, notebooks, known, roster))
    if not found:
        raise GradingError(f"no submission in {folder}: expected STUDENT/{lab}/{notebooks[0]}.ipynb")
    return found


def _submission(
    student: str, entry: Path, lab: str, notebooks: list[str], known: set[str] | None, roster: Path
) -> Submission:
    if entry.is_file() or entry.is_symlink():
        place, files = entry.parent, {notebooks[0]: entry}
    else:
        inner = entry / lab
        place = inner if inner.is_dir() and not inner.is_symlink() else entry
        files = {n: place / f"{n}.ipynb" for n in notebooks if (place / f"{n}.ipynb").exists()}
    refused = ""
    if not STUDENT.fullmatch(student) or student.startswith("."):
        refused = "the name is no student id (letters, digits and . _ @ -)"
    elif known is not None and student not in known:
        refused = texts.UNKNOWN_STUDENT.format(roster=roster.name)
    elif not files:
        refused = texts.NO_LAB.format(lab=lab, expected=f"{student}/{lab}/{notebooks[0]}.ipynb")
    return Submission(student, files, place, refused)


def read_roster(path: Path) -> set[str] | None:
    """The ids of a class, from a CSV with a column ``id``; None where there is no roster."""
    if not path.exists():
        return None
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file)
        if "id" not in (rows.fieldnames or ()):
            raise GradingError(f"{path} has no column 'id'")
        return {row["id"].strip() for row in rows if row["id"]}
