"""Student data goes after a date, or that of one student at once: `python -m grading forget`.

What belongs to a student in a lab: what was handed in and made of it, verdicts, feedback, points in every
gradebook that the class was graded into, the row of `grades.csv`, requests for a regrade and the verdicts on
them. All of it goes or none: gradebooks first, which may not answer, and what was handed in last, because
its dates say that it is old. Files that hold others' points, too, and can be made again go whole: a lab's own
table, its exports and packed feedback for an LMS, the page about the class, and what `nbgrader export` wrote.
Of the table that was put aside, whose columns nobody here knows, the rows go that name the student, but for
those that name another lab.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry

from grading.core import texts
from grading.core.commands import guess
from grading.core.course import EXAMPLE, Course
from grading.core.errors import GradingError
from grading.core.verdicts import write_whole
from grading.lms import gradebook, late, regrades, tables
from grading.lms.roster import read_roster, remembered
from grading.lms.submissions import find_submissions

SUFFIXES = (".ipynb", ".zip")  # of what a student hands in as one file


@dataclass(frozen=True)
class Past:
    """One student's data of one lab: since when it is here (UTC), and its files and folders."""

    student: str
    lab: str
    since: datetime
    places: tuple[Path, ...]


def gradebooks(course: Course, urls: Sequence[str]) -> list[Course]:
    """The course once for each of its gradebooks: the file at home, where there is one, and those elsewhere.

    Raises GradingError where the class was graded into one that is not given, and where one does not answer.
    """
    given = [replace(course, database=url) for url in dict.fromkeys([*urls, course.database]) if url]
    if missing := [place for place in course.known_databases() if place not in {c.place for c in given}]:
        raise GradingError(
            f"this class was also graded into {missing[0]}, whose points would stay.\n"
            f"Add --gradebook {EXAMPLE}, or, if that database is gone for good, "
            f"delete its line in {course.databases}"
        )
    at_home = replace(course, database="")
    found = [*([at_home] if at_home.gradebook.exists() else []), *given]
    for each in found:
        gradebook.check(each, texts.NOTHING_DELETED)
    return found


def past(
    course: Course, before: datetime, books: Sequence[Course] | None = None, student: str = ""
) -> list[Past]:
    """What was handed in before a moment (UTC), by `student` or by all, in the order of labs and students.

    The moment is what `timestamp.txt` says, else when the youngest file of the submission was written. Where
    only verdicts, points or a row are left, it is when those were written. `books` are the `gradebooks`.
    Raises GradingError for a student of whom nothing is here.
    """
    books = gradebooks(course, ()) if books is None else books
    known = sorted(_known(course, books))
    if student:
        everybody = {who for _, who in known}
        known = [pair for pair in known if pair[1] == student]
        if not known:
            raise GradingError(f"nothing of {student}{guess(student, everybody)} is in {course.home}")
    handed_in = _handed_in(course, {lab for lab, _ in known})
    found = []
    for lab, who in known:
        submitted = handed_in.get((lab, who), ())
        places = (*_places(course, lab, who), *submitted)
        since = (
            late.handed_in_at(course.submitted / who / lab / late.STAMP)
            or _youngest(submitted)
            or _youngest(places)
            or next((time for book in books if (time := _in_gradebook(book, lab, who))), None)
            or _youngest([course.grades])
        )
        if since and since < before:
            found.append(Past(who, lab, since, places))
    return found


def with_others(course: Course, gone: Iterable[Past]) -> Iterator[str]:
    """Whose grade goes with a group's hand-in, a line each."""
    pairs = {(each.lab, each.student) for each in gone}
    for row in tables.read_grades(course):
        whose, by = (row["lab"], row["student"]), (row["lab"], row.get("handed_in_by", ""))
        if by in pairs and whose not in pairs:
            yield f"{row['student']} loses the grade of {row['lab']}, too: {by[1]} handed it in for the group"


def named(course: Course, student: str) -> list[Path]:
    """The files of an instructor that name a student: `course.toml` and the rosters, which are not ours."""
    rosters = map(Path, remembered(course.rosters).values())
    files = sorted({course.settings, course.roster, *rosters})
    whole = re.compile(rf"(?<![\w.@-]){re.escape(student)}(?![\w.@-])")
    return [file for file in files if file.is_file() and whole.search(file.read_text("utf-8", "replace"))]


def _known(course: Course, books: Sequence[Course]) -> Iterator[tuple[str, str]]:
    """Every lab and student of whom anything is here."""
    seen = set()
    for folder in _folders(course):
        seen |= {(p.name, p.parent.name) for p in folder.glob("*/*") if p.is_dir()}
    for store in _stores(course):
        seen |= {(p.parent.name, _whose(p)) for p in store.glob("*/*@*.json")}
    seen |= {(asked.lab, asked.student) for asked in _requests(course)}
    seen |= {(row["lab"], row["student"]) for row in tables.read_grades(course)}
    for each in books:
        with gradebook.writable(each), Gradebook(each.db_url) as book:
            seen |= {(a.name, s.student_id) for a in book.assignments for s in a.submissions}
    yield from seen


def _places(course: Course, lab: str, student: str) -> Iterator[Path]:
    """What was made of a submission."""
    for folder in _folders(course)[1:]:
        if (place := folder / student / lab).is_dir():
            yield place
    for store in _stores(course):
        yield from sorted(p for p in (store / lab).glob("*@*.json") if _whose(p) == student)
        yield from sorted((store / lab).glob(f".{student}@*.json-*"))  # a run was killed while it wrote
    yield from sorted(course.regrades.glob(f"{student}@{lab}@*"))
    yield from (r.path for r in _requests(course) if (r.lab, r.student) == (lab, student))


def _folders(course: Course) -> tuple[Path, ...]:
    """Those with a folder for each student and in it one for each lab; what was handed in comes first."""
    return course.submitted, course.autograded, course.feedback, course.home / "staged"


def _handed_in(course: Course, labs: Iterable[str]) -> Mapping[tuple[str, str], tuple[Path, ...]]:
    """What was handed in, by lab and student, in any of the forms that `grade` takes.

    A file STUDENT.ipynb does not say of which lab it is: it goes with the last thing of that student.
    """
    found: dict[tuple[str, str], tuple[Path, ...]] = {}
    for place in course.submitted.glob("*/*"):
        if place.is_dir():
            found[place.name, place.parent.name] = (place,)
    roster = read_roster(course.roster)
    for lab in labs:
        names = sorted(path.stem for path in (course.labs / lab).glob("*.ipynb"))
        with contextlib.suppress(GradingError):  # nothing was handed in there
            for each in find_submissions(course.submitted, lab, names, roster) if names else ():
                files = [path for path in each.notebooks.values() if path.stem != each.student]
                if files and (lab, each.student) not in found:
                    found[lab, each.student] = tuple(files)
    return found


def _stores(course: Course) -> tuple[Path, ...]:
    """The class's verdicts, those on requests for a regrade, what an LMS called the files, and notes of files
    that cannot be read."""
    return course.verdicts, course.regrades / "verdicts", course.senders, course.unread


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
    try:
        with gradebook.writable(course), Gradebook(course.db_url) as book:
            return book.find_submission(lab, student).timestamp
    except MissingEntry:
        return None


def forget(course: Course, gone: Sequence[Past], books: Sequence[Course] | None = None) -> None:
    """Delete it. What was interrupted is found again by what is left."""
    books = gradebooks(course, ()) if books is None else books
    pairs = {(each.lab, each.student) for each in gone}
    for each in books:
        _from_gradebook(each, pairs)
    if rows := tables.read_grades(course):
        kept = [row for row in rows if not pairs & {(row["lab"], who) for who in _of_row(row)}]
        write_whole(course.grades, tables.as_csv(list(rows[0]), kept))
    _from_put_aside(course, pairs, books)
    if pairs:
        course.exported.unlink(missing_ok=True)
        course.class_page.unlink(missing_ok=True)
    for lab in {lab for lab, _ in pairs}:
        for path in (*course.home.glob(f"grades-{lab}-*.csv"), course.home / f"grades-{lab}.csv"):
            path.unlink(missing_ok=True)
        for path in course.home.glob(f"feedback-{lab}-*"):
            _delete(course, path)
    if pairs:
        for path in course.home.glob(".grades*.csv-*"):  # a run was killed while it wrote
            path.unlink()
    for past_one in gone:
        for place in past_one.places:
            _delete(course, place)
    for student in {each.student for each in gone} - {student for _, student in _known(course, books)}:
        for place in (course.submitted / student, *(course.submitted / f"{student}{s}" for s in SUFFIXES)):
            if place.exists():
                _delete(course, place)


def _delete(course: Course, place: Path) -> None:
    """A folder or a file, and the student's folder around it, where that is empty now."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    if place.parent.parent in _folders(course) and not any(place.parent.iterdir()):
        place.parent.rmdir()


def left(course: Course, before: datetime, books: Sequence[Course]) -> list[Path]:
    """Files of before a moment (UTC) that `past` knows no owner of: for a person to look at."""
    known = sorted(_known(course, books))
    handed_in = _handed_in(course, {lab for lab, _ in known})
    owned = {place for pair in known for place in (*_places(course, *pair), *handed_in.get(pair, ()))}
    here = (*_folders(course), *_stores(course), course.regrades)
    files = {file for folder in here for file in folder.rglob("*") if file.is_file()}
    return sorted(
        file
        for file in files
        if not owned & {file, *file.parents} and (when := _youngest([file])) and when < before
    )


def _of_row(row: Mapping[str, str]) -> tuple[str, str]:
    """Whose points a row has: of a group, the member's who handed in."""
    return row["student"], row.get("handed_in_by") or row["student"]


def _from_put_aside(course: Course, pairs: set[tuple[str, str]], books: Sequence[Course]) -> None:
    if not course.put_aside.exists():
        return
    table = course.put_aside.read_bytes()
    try:
        lines = table.decode().splitlines(keepends=True)
    except UnicodeDecodeError:
        lines = table.decode("latin-1").splitlines(keepends=True)
    labs = {lab for lab, _ in _known(course, books)} | {lab for lab, _ in pairs}
    kept = [line for line in lines if not any(_is_of(line, *pair, labs) for pair in pairs)]
    if kept != lines:
        write_whole(course.put_aside, "".join(kept))


def _is_of(line: str, lab: str, student: str, labs: set[str]) -> bool:
    """Whether a line of a table, with commas, semicolons or tabs, is a student's, of this lab or of none."""
    cells = {cell.strip().strip("\"'").strip() for cell in re.split("[,;\t]", line)}
    return student in cells and (lab in cells or not labs & cells)


def _from_gradebook(course: Course, pairs: set[tuple[str, str]]) -> None:
    """Submissions go, and students who have none left."""
    with gradebook.writable(course), Gradebook(course.db_url) as book:
        for lab, student in sorted(pairs):
            with contextlib.suppress(MissingEntry):
                book.remove_submission(lab, student)
        for student in {student for _, student in pairs}:
            with contextlib.suppress(MissingEntry):
                if not book.find_student(student).submissions:
                    book.remove_student(student)
