"""Student data goes after a date: `python -m grading forget`.

What belongs to a student in a lab: what was handed in and made of it, verdicts, feedback, points in the
gradebook, the row of `grades.csv`, requests for a regrade and the verdicts on them. All of it goes or none.
Tables that hold others' points, too, and can be made again go whole: a lab's own table, its exports for an
LMS, and what `nbgrader export` wrote. Of the table that was put aside, whose columns nobody here knows, the
rows go that name the student, but for those that name another lab.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry

from grading.core.course import Course
from grading.core.errors import GradingError
from grading.core.verdicts import write_whole
from grading.lms import gradebook, late, regrades, tables


@dataclass(frozen=True)
class Past:
    """One student's data of one lab: since when it is here (UTC), and its files and folders."""

    student: str
    lab: str
    since: datetime
    places: tuple[Path, ...]


def past(course: Course, before: datetime) -> list[Past]:
    """What was handed in before a moment (UTC), in the order of labs and students.

    The moment is what `timestamp.txt` says, else when the youngest file of the submission was written. Where
    only verdicts, points or a row are left, it is when those were written.
    """
    found = []
    for lab, student in sorted(_known(course)):
        places = tuple(_places(course, lab, student))
        handed_in = course.submitted / student / lab
        since = (
            late.handed_in_at(handed_in / late.STAMP)
            or _youngest([handed_in])
            or _youngest(places)
            or _in_gradebook(course, lab, student)
            or _youngest([course.grades])
        )
        if since and since < before:
            found.append(Past(student, lab, since, places))
    return found


def _known(course: Course) -> Iterator[tuple[str, str]]:
    """Every lab and student of whom anything is here."""
    seen = set()
    for folder in (course.submitted, course.autograded, course.feedback):
        seen |= {(p.name, p.parent.name) for p in folder.glob("*/*") if p.is_dir()}
    for store in _stores(course):
        seen |= {(p.parent.name, _whose(p)) for p in store.glob("*/*@*.json")}
    seen |= {(asked.lab, asked.student) for asked in _requests(course)}
    seen |= {(row["lab"], row["student"]) for row in tables.read_grades(course)}
    if course.database or course.gradebook.exists():
        with gradebook.writable(course), Gradebook(course.db_url) as book:
            seen |= {(a.name, s.student_id) for a in book.assignments for s in a.submissions}
    yield from seen


def _places(course: Course, lab: str, student: str) -> Iterator[Path]:
    for folder in (course.submitted, course.autograded, course.feedback):
        if (place := folder / student / lab).is_dir():
            yield place
    for store in _stores(course):
        yield from sorted(p for p in (store / lab).glob("*@*.json") if _whose(p) == student)
    yield from sorted(course.regrades.glob(f"{student}@{lab}@*"))
    yield from (r.path for r in _requests(course) if (r.lab, r.student) == (lab, student))


def _stores(course: Course) -> tuple[Path, Path]:
    """The class's verdicts, and those on requests for a regrade."""
    return course.verdicts, course.regrades / "verdicts"


def _whose(verdict: Path) -> str:
    """The student of a stored verdict; an id may have an @, the name of a notebook has none."""
    return verdict.name.rpartition("@")[0]


def _requests(course: Course) -> Iterator[regrades.Request]:
    """Requests that can be read and name a lab; whose the others are, nobody knows."""
    with contextlib.suppress(GradingError):  # no folder, no requests
        found, _ = regrades.requests(course, course.regrades)
        yield from (asked for asked in found if re.fullmatch(r"[0-9]\w*", asked.lab))


def _youngest(places: Sequence[Path]) -> datetime | None:
    files = [f for place in places for f in (place.rglob("*") if place.is_dir() else [place]) if f.is_file()]
    times = [file.stat().st_mtime for file in files]
    return datetime.fromtimestamp(max(times), UTC).replace(tzinfo=None) if times else None


def _in_gradebook(course: Course, lab: str, student: str) -> datetime | None:
    if not course.database and not course.gradebook.exists():
        return None
    try:
        with gradebook.writable(course), Gradebook(course.db_url) as book:
            return book.find_submission(lab, student).timestamp
    except MissingEntry:
        return None


def forget(course: Course, gone: Sequence[Past]) -> None:
    """Delete it: files first, so that what was interrupted is found again by what is left."""
    for each in gone:
        for place in each.places:
            if place.is_dir():
                shutil.rmtree(place)
                if not any(place.parent.iterdir()):
                    place.parent.rmdir()
            else:
                place.unlink()
    pairs = {(each.lab, each.student) for each in gone}
    if rows := tables.read_grades(course):
        kept = [row for row in rows if (row["lab"], row["student"]) not in pairs]
        write_whole(course.grades, tables.as_csv(list(rows[0]), kept))
    _from_put_aside(course, pairs)
    _from_gradebook(course, pairs)
    if pairs:
        course.exported.unlink(missing_ok=True)
    for lab in {lab for lab, _ in pairs}:
        for path in (*course.home.glob(f"grades-{lab}-*.csv"), course.home / f"grades-{lab}.csv"):
            path.unlink(missing_ok=True)


def _from_put_aside(course: Course, pairs: set[tuple[str, str]]) -> None:
    if not course.put_aside.exists():
        return
    table = course.put_aside.read_bytes()
    try:
        lines = table.decode().splitlines(keepends=True)
    except UnicodeDecodeError:
        lines = table.decode("latin-1").splitlines(keepends=True)
    labs = {lab for lab, _ in _known(course)} | {lab for lab, _ in pairs}
    kept = [line for line in lines if not any(_is_of(line, *pair, labs) for pair in pairs)]
    if kept != lines:
        write_whole(course.put_aside, "".join(kept))


def _is_of(line: str, lab: str, student: str, labs: set[str]) -> bool:
    """Whether a line of a table, with commas, semicolons or tabs, is a student's, of this lab or of none."""
    cells = {cell.strip().strip("\"'").strip() for cell in re.split("[,;\t]", line)}
    return student in cells and (lab in cells or not labs & cells)


def _from_gradebook(course: Course, pairs: set[tuple[str, str]]) -> None:
    """Submissions go, and students who have none left."""
    if not course.database and not course.gradebook.exists():
        return
    with gradebook.writable(course), Gradebook(course.db_url) as book:
        for lab, student in sorted(pairs):
            try:
                book.remove_submission(lab, student)
            except MissingEntry:
                continue
        for student in {student for _, student in pairs}:
            try:
                if not book.find_student(student).submissions:
                    book.remove_student(student)
            except MissingEntry:
                continue
