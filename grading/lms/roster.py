"""Who is in a class, and what a learning management system calls each of them.

A roster is a CSV of one's own, Canvas's export of its gradebook, or Moodle's grading worksheet; the
columns say which.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from grading.core.commands import guess
from grading.core.course import Course
from grading.core.errors import GradingError
from grading.core.verdicts import write_whole

# What is taken from which columns: the first that is there and filled. Ours, Canvas's, Moodle's.
COLUMNS = {
    "id": ("id", "SIS Login ID", "SIS User ID", "ID number", "Email address", "ID"),
    "canvas": ("canvas", "ID"),
    "moodle": ("moodle", "Identifier"),
    "github": ("github", "github_username"),
    "name": ("name", "Student", "Full name"),
    "email": ("email", "Email address"),
    "section": ("section", "Section"),
    "handed_in": ("handed_in", "Last modified (submission)"),
}
ASSIGNMENT = re.compile(r".*\S \(\d+\)")  # a column of Canvas's export: "Memory (9876)"
PARTICIPANT = re.compile(r"\D*(\d+)")  # "Participant 4711" in the worksheet, 4711 in names of files


@dataclass(frozen=True)
class Student:
    """One row. `canvas` is a user's number, `moodle` the participant's number in this one assignment."""

    id: str
    canvas: str = ""
    moodle: str = ""
    name: str = ""
    email: str = ""
    section: str = ""
    github: str = ""  # a user's name there
    handed_in: str = ""  # when, as it was written: `late.moment` reads it
    of_lab: bool = False  # that time is of the lab that was asked for
    row: Mapping[str, str] = field(
        default_factory=dict, compare=False
    )  # what Canvas's export has before points

    @property
    def first_and_last(self) -> tuple[str, str]:
        """``Doe, Jane`` and ``Jane Doe`` as nbgrader keeps names."""
        last, comma, first = self.name.partition(",")
        if not comma:
            first, _, last = self.name.rpartition(" ")
        return first.strip(), last.strip()


@dataclass(frozen=True)
class Sender:
    """Who handed something in, as a file's or folder's name says it: an id, or an LMS's number and name."""

    key: str
    lms: str = ""  # "canvas", "moodle", or nothing
    name: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.lms.capitalize()} {self.key})" if self.lms else self.key


@dataclass(frozen=True)
class Roster:
    """The students of a class by id; `path` is None where there is no roster, and everybody is welcome.

    `titles` are the assignments in Canvas's export of its gradebook, `times` the columns that seem to say
    when somebody handed in, and `notes` what a person should know of the file.
    """

    path: Path | None = None
    students: dict[str, Student] = field(default_factory=dict)
    titles: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def find(self, sender: Sender) -> Student | None:
        """The student who sent it: by number, then by a name that only one has."""
        if self.path is None:
            numbers = {sender.lms: sender.key}
            return Student(sender.key, numbers.get("canvas", ""), numbers.get("moodle", ""), sender.name)
        if not sender.lms:
            return self.students.get(sender.key) or self._of_repository(sender.key)
        everybody = self.students.values()
        same = [s for s in everybody if getattr(s, sender.lms) == sender.key]
        parts = sender.name.split("-")  # Moodle puts the group before the name
        for spelling in (letters("-".join(parts[i:])) for i in range(len(parts))):
            same = same or [s for s in everybody if spelling in _spellings(s.name)]
        return same[0] if len(same) == 1 else None

    def _of_repository(self, name: str) -> Student | None:
        """Whose clone has a name such as ``lab-04-ada``, as GitHub Classroom calls them: ASSIGNMENT-USER."""
        same = [
            s
            for s in self.students.values()
            if s.github and f"-{name}".casefold().endswith(f"-{s.github}".casefold())
        ]
        return max(same, key=lambda s: len(s.github), default=None)


def letters(name: str) -> str:
    """A name without blanks, commas and capitals, as Canvas writes it into names of files."""
    return re.sub(r"[\W_]+", "", name).casefold()


def _spellings(name: str) -> Iterator[str]:
    """``Doe, Jane`` and ``Jane Doe`` are the same person."""
    if letters(name):
        yield letters(name)
        last, comma, first = name.partition(",")
        if comma:
            yield letters(first + last)
        else:
            first, _, last = name.rpartition(" ")
            yield letters(last + first)


def read_roster(path: Path, lab: str = "") -> Roster:
    """The class in a CSV; without such a file a roster that knows everybody.

    A column ``handed_in_LAB`` has the times of one lab, and goes before those that do not say of which.
    """
    if not path.exists():
        return Roster()
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            head = file.readline()
            file.seek(0)
            rows = csv.DictReader(
                file, delimiter=max(",;\t", key=head.count)
            )  # spreadsheets differ by country
            columns = rows.fieldnames or ()
            if not set(columns) & set(COLUMNS["id"]):
                others = ", ".join(COLUMNS["id"][1:])
                raise GradingError(f"{path} has no column 'id', nor one of Canvas's or Moodle's: {others}")
            lead = tuple(_lead(columns)) if {"Student", "ID"} <= set(columns) else ()
            found = list(_students(rows, lead, times_of(lab)))
    except (UnicodeDecodeError, csv.Error) as error:
        raise GradingError(f"{path} is no CSV in UTF-8: {error}") from error
    for what, words in (("id", "ids"), ("canvas", "numbers of Canvas"), ("moodle", "numbers of Moodle")):
        count = Counter(filter(None, (getattr(student, what) for student in found)))
        if twice := sorted(value for value, times in count.items() if times > 1):
            raise GradingError(f"{path} has some {words} more than once: {', '.join(twice[:5])}")
    titles = tuple(filter(ASSIGNMENT.fullmatch, columns)) if lead else ()
    timed = tuple(name for name in columns if letters(name).startswith(letters("handed_in")))
    return Roster(path, {student.id: student for student in found}, titles, timed)


def times_of(lab: str) -> tuple[str, ...]:
    """The columns that have the times of one lab: by its name or its number."""
    return (f"handed_in_{lab}", f"handed_in_{lab.partition('_')[0]}") if lab else ()


def _lead(columns: Sequence[str]) -> Iterator[str]:
    """Canvas's columns before its assignments, by which it knows a student when grades come back."""
    first = next((i for i, name in enumerate(columns) if ASSIGNMENT.fullmatch(name)), len(columns))
    known = ("Student", "ID", "SIS User ID", "SIS Login ID", "Integration ID", "Root Account", "Section")
    ours = {name for names in COLUMNS.values() for name in names} - set(known)
    for name in columns[:first] if first < len(columns) else (c for c in columns if c in known):
        if name not in ours and not name.startswith("handed_in"):
            yield name


def of_lab(course: Course, lab: str, given: Path | None = None) -> Roster:
    """The class of a lab: in the file given, or in that which an earlier run was given, or in `roster.csv`.

    Without such a memory a later run would leave out who is missing, and what an LMS needs to know of
    everybody. Raises GradingError for a file that is not there, or is no roster.
    """
    paths = remembered(course.rosters)
    if given:
        path = given.resolve()
        if not path.is_file():
            raise GradingError(f"no roster {given}: give a CSV file")
        roster = read_roster(path, lab)
        if paths.get(lab) != str(path):
            remember(course.rosters, lab, str(path))
        return _of_one_lab(course, lab, roster)
    if lab not in paths:
        return _of_one_lab(course, lab, read_roster(course.roster, lab))
    if not (path := Path(paths[lab])).is_file():
        raise GradingError(
            f"{lab} was graded with the roster {path}, which is gone: give it, or a newer one, with --roster"
        )
    return _of_one_lab(course, lab, read_roster(path, lab))


def _of_one_lab(course: Course, lab: str, roster: Roster) -> Roster:
    """Without times of handing in that do not say of which lab they are, where the file is several labs'.

    A column of times that is read for no lab is named, because somebody would be late, or not, in silence.
    """
    labs = [lab, *course.lab_names(), *(place.name for place in course.labs.glob("[0-9]*"))]
    known = {"handed_in", *(column for each in labs for column in times_of(each))}
    if strange := [column for column in roster.times if column not in known]:
        named = ", ".join(f"'{column}'{guess(column, known)}" for column in strange)
        note = f"{roster.path and roster.path.name} has a column that is read for no lab: {named}"
        roster = replace(roster, notes=(note,))
    if roster.path is None or not any(student.handed_in for student in roster.students.values()):
        return roster
    paths = remembered(course.rosters)
    graded = sorted({path.parent.name for path in course.verdicts.glob("*/*@*.json")} - {lab})
    others = [each for each in graded if Path(paths.get(each, course.roster)) == roster.path]
    plain = {who for who, each in roster.students.items() if each.handed_in and not each.of_lab}
    if not others or not plain:
        return roster
    note = (
        f"{roster.path.name} is the roster of {', '.join([lab, *others])}, and does not say of which lab its "
        f"times of handing in are, so they are not read. Call their column {times_of(lab)[1]}, or give each "
        "lab a roster of its own"
    )
    students = {
        who: replace(each, handed_in="") if who in plain else each for who, each in roster.students.items()
    }
    return replace(roster, students=students, notes=(*roster.notes, note))


def remembered(path: Path) -> dict[str, str]:
    """What an option said of each lab in an earlier run. Raises GradingError for a damaged file."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError) as error:
        raise GradingError(f"{path} is damaged: delete it and give --roster and --title again") from error


def remember(path: Path, lab: str, said: str) -> None:
    """Keep what an option says of a lab, for later runs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps({**remembered(path), lab: said}, indent=1))


def _students(rows: Iterable[dict[str, str]], lead: Sequence[str], times: Sequence[str]) -> Iterator[Student]:
    for row in rows:
        values = {
            what: next((row[c].strip() for c in columns if row.get(c) and row[c].strip()), "")
            for what, columns in COLUMNS.items()
        }
        if "Points Possible" in values["name"] or values["name"] == "Student, Test":
            continue  # Canvas's second row, and the student that it invents for teachers
        if not values["name"]:
            values["name"] = " ".join(filter(None, (row.get("first_name"), row.get("last_name"))))
        number = PARTICIPANT.fullmatch(values["moodle"])
        values["moodle"] = number[1] if number else values["moodle"]
        own = next((row[c].strip() for c in times if row.get(c) and row[c].strip()), "")
        values["handed_in"] = own or values["handed_in"]
        if values["id"]:
            kept = {column: row.get(column) or "" for column in lead}
            yield Student(**values, of_lab=bool(own), row=kept)
