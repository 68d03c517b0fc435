"""The one table of a lab's grades, made from the gradebook.

`grades.csv`, `grades-LAB.csv`, what goes back to a learning management system, and the lines after a run are
all made from it. A row is a student of the roster or of the gradebook, whoever was in the folder of this run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

from nbgrader.api import Gradebook

from grading.core import texts
from grading.core.course import Course
from grading.core.tasks import Lab
from grading.core.verdicts import NotebookVerdict, Store, write_whole
from grading.lms import gradebook, late, newer, settings, submissions
from grading.lms.roster import Roster, Student
from grading.lms.settings import Group
from grading.lms.submissions import REFUSED, UNMATCHED, Refusal, sender_of
from grading.lms.tables import as_csv, read_grades

FINAL, MISSING, UNGRADED = "final", "missing", "ungraded"


@dataclass(frozen=True)
class Final:
    """What one student has in a lab.

    `cells` is empty for those who handed in nothing. `waiting` names what a person must still look at;
    `reason` says why exercises among it have no verdict, and is empty where all have one; `refused` why
    nbgrader did not take this run's verdicts.
    """

    who: Student
    lab: str
    of: float
    cells: Mapping[tuple[str, str], gradebook.Held] = field(default_factory=dict)  # by notebook and grade id
    waiting: tuple[tuple[str, str], ...] = ()  # the same
    reason: str = ""
    refused: str = ""
    doubt: str = ""  # why nobody knows what being late costs
    newer: str = ""  # why a newer file cannot be read, until a person has decided that this one counts
    why: str = ""  # of being late or not, of an extension, of slip days
    sent_as: str = ""  # what Canvas or Moodle called the file or folder that was handed in
    by: str = ""  # the member of a group who handed it in, where that is somebody else

    @property
    def holder(self) -> str:
        """Under whose id gradebook, verdicts and feedback have it."""
        return self.by or self.who.id

    @property
    def points(self) -> float:
        """Before anything is taken off for being late."""
        return round(sum(cell.points for cell in self.cells.values()), 2)

    @property
    def by_hand(self) -> float | None:
        """Those among the points that a person gave; None where nobody gave any."""
        given = [cell.points if cell.manual is not None else cell.extra for cell in self.cells.values()]
        return (
            round(sum(filter(None, given), 0.0), 2) if any(points is not None for points in given) else None
        )

    @property
    def late(self) -> float:
        """What is taken off for being late, as a number of at most 0."""
        penalties = {notebook: cell.late for (notebook, _), cell in self.cells.items()}
        return round(0.0 - sum(penalties.values()), 2)

    @property
    def total(self) -> float:
        """The grade: points, less what is taken off."""
        return round(max(0.0, self.points + self.late), 2)

    @property
    def state(self) -> str:
        """``final``, ``missing``, ``ungraded``, ``refused``, how many answers wait, or what is in doubt."""
        if self.refused:
            return REFUSED
        if not self.cells:
            return MISSING
        if self.reason:
            return UNGRADED
        if number := len(self.waiting):
            return f"{number} answer{'s wait' if number > 1 else ' waits'}"
        return texts.NEWER_UNREADABLE if self.newer else self.doubt or FINAL

    @property
    def is_final(self) -> bool:
        return self.state == FINAL

    def row(self) -> dict[str, object]:
        """As `grades.csv` has it. Numbers are empty for those who handed in nothing."""
        words = {"student": self.who.id, "name": self.who.name, "lab": self.lab, "of": self.of}
        words |= {"state": self.state, "reason": texts.clean(self.refused or self.reason or self.newer)}
        if not self.cells:
            return words
        by_hand = "" if self.by_hand is None else self.by_hand
        return words | {
            "points": self.points,
            "by_hand": by_hand,
            "late": self.late,
            "why": texts.clean(self.why or self.doubt),
            "total": self.total,
            "handed_in_by": self.by,
        }


def reasons(
    verdicts: Mapping[str, NotebookVerdict], waiting: Collection[tuple[str, str]] | None = None
) -> str:
    """Why exercises have no verdict, each reason once with the exercises it is about; empty for most.

    With `waiting`, notebooks and grade ids, of no other exercises.
    """
    found: dict[str, list[str]] = {}
    for notebook, verdict in verdicts.items():
        about = [e for e in verdict.exercises if waiting is None or (notebook, e.cell) in waiting]
        if verdict.ungraded and (about or waiting is None):
            found.setdefault(verdict.ungraded, [])
        elif not verdict.ungraded:
            for each in about:
                if each.ungraded:
                    found.setdefault(each.ungraded, []).append(each.exercise)
    return "; ".join(f"{', '.join(about)}: {why}" if about else why for why, about in found.items())


def table(
    course: Course, lab: str, roster: Roster, people: Mapping[str, Student] | None = None
) -> list[Final]:
    """Everybody's grade in a lab, by student: who is in the gradebook, and who else is on the roster.

    `people` says what a run has learnt of students without a roster. Raises GradebookError.
    """
    known = gradebook.people(course)
    for student, who in {**(people or {}), **roster.students}.items():
        said = {what: value for what, value in vars(who).items() if value}
        known[student] = replace(known.get(student, who), **said)
    store, unread, found = Store(course.verdicts), newer.open_ones(course, lab), {}
    rules = settings.read(course)
    together = rules.groups_of(lab)
    with gradebook.writable(course), Gradebook(course.db_url) as book:
        charges = late.of_everybody(course, book)
    for student, group in groupby(gradebook.held(course, lab), key=lambda cell: cell.student):
        cells = {(cell.notebook, cell.cell): cell for cell in group}
        waiting = tuple(place for place, cell in cells.items() if cell.waits)
        asked = {notebook: store.get(student, lab, notebook) for notebook, _ in waiting}
        why = reasons({notebook: verdict for notebook, verdict in asked.items() if verdict}, waiting)
        of = round(sum(cell.of for cell in cells.values()), 2)
        told = charges.get((student, lab), late.untimed(rules, lab, student)).why
        called = submissions.sent_as(course, lab, student)
        who = _numbered(known.get(student, Student(student)), called)
        doubt = late.doubt(course, rules, lab, student, who.handed_in, submissions.is_late(called))
        aside = unread.get(student, "")
        found[student] = Final(
            who, lab, of, cells, waiting, why, doubt=doubt, newer=aside, sent_as=called, why=told
        )
    of = max((each.of for each in found.values()), default=0.0)
    for student, who in roster.students.items():
        found.setdefault(student, Final(who, lab, of))
    for member in (member for group in together for member in group.members if found):
        called = submissions.sent_as(course, lab, member)
        if called or member in known:  # without a roster, a member who is known from elsewhere
            who = _numbered(known.get(member, Student(member)), called)
            before = found.setdefault(member, Final(who, lab, of))
            found[member] = replace(before, who=_numbered(before.who, called), sent_as=called)
    found |= _shared(together, found)
    return [found[student] for student in sorted(found)]


def _shared(groups: Iterable[Group], found: Mapping[str, Final]) -> dict[str, Final]:
    """The rows of members who handed in nothing themselves: those of the first member who did.

    The gradebook holds a group's hand-in once, so it is judged once and a person reads it once.
    """
    rows: dict[str, Final] = {}
    for group in groups:
        members = [found[member] for member in group.members if member in found]
        if first := next((each for each in members if each.cells), None):
            for each in members:
                if not each.cells:
                    rows[each.who.id] = replace(first, who=each.who, sent_as=each.sent_as, by=first.who.id)
    return rows


def unmatched(course: Course, lab: str, rows: Iterable[Final]) -> dict[str, Refusal]:
    """Senders in grades.csv whose files of a lab were nobody's in an earlier run, and are still in no row."""
    known: set[str] = set()
    for each in rows:
        known |= {each.who.id, sender_of(each.sent_as) if each.cells else ""}
    return {
        row["student"]: Refusal(row["reason"], unmatched=True)
        for row in read_grades(course)
        if row["lab"] == lab and row["state"] == UNMATCHED and row["student"] not in known
    }


def of_groups(groups: Iterable[Group], rows: Iterable[Final]) -> Iterator[str]:
    """What a person should know of a lab's groups, a line each."""
    found = {each.who.id: each for each in rows}
    for group in groups:
        if strangers := [member for member in group.members if member not in found]:
            yield (
                f"group {group.name}: nobody has the id {', '.join(strangers)}, on the roster or in the "
                "gradebook. Correct it in course.toml"
            )
        own = [m for m in group.members if m in found and found[m].cells and not found[m].by]
        if len(own) > 1:
            yield (
                f"group {group.name}: {', '.join(own)} handed in different files; "
                "each gets the grade of its own"
            )


def _numbered(who: Student, sent_as: str) -> Student:
    """A student with the numbers that an LMS wrote into the name of the file or folder.

    Moodle's number is another one in each assignment: that of the hand-in counts, whatever a roster says.
    """
    if match := submissions.MOODLE.fullmatch(sent_as):
        return replace(who, moodle=match["key"])
    match = submissions.CANVAS.fullmatch(sent_as)
    return replace(who, canvas=match["key"]) if match and match["key"].isdigit() and not who.canvas else who


def exercises(lab: Lab) -> dict[tuple[str, str], str]:
    """What each graded cell is called, by notebook and grade id: its exercise, or its grade id."""
    asked = {(name, q.cell): q.exercise for name, questions in lab.questions.items() for q in questions}
    cells = (
        (name, cell.metadata.nbgrader.grade_id)
        for name, notebook in lab.notebooks.items()
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("grade")
    )
    return {place: asked.get(place, place[1]) for place in cells}


def standing(rows: Iterable[Final]) -> str:
    """How a lab stands, in one line: ``21 students: 14 final, 6 with answers that wait, 1 missing``."""
    rows = list(rows)
    waits, doubtful = "with answers that wait", "whose lateness is not known"
    broken = "with a newer file that cannot be read"
    counts = Counter(
        each.state
        if each.state in (FINAL, UNGRADED, REFUSED, MISSING)
        else (waits if each.waiting else broken if each.newer else doubtful)
        for each in rows
    )
    states = (FINAL, waits, broken, doubtful, UNGRADED, REFUSED, MISSING)
    parts = [f"{counts[state]} {state}" for state in states if counts[state]]
    return f"{len(rows)} student{'s' * (len(rows) != 1)}: {', '.join(parts)}"


def write(course: Course, lab: Lab, rows: Iterable[Final]) -> Path:
    """Write ``grades-LAB.csv``, the table with a column for each exercise; returns its path.

    What nobody has given points to yet is empty there.
    """
    columns = exercises(lab)
    written = []
    for each in rows:
        given = {p: c.points for p, c in each.cells.items() if c.auto is not None or c.manual is not None}
        written.append(each.row() | {columns[place]: given[place] for place in columns.keys() & given.keys()})
    path = course.grades.with_name(f"grades-{lab.name}.csv")
    ends = ("points", "by_hand", "late", "why", "total", "of", "state", "reason", "handed_in_by")
    fields = ("student", "name", *columns.values(), *ends)
    write_whole(path, as_csv(fields, written))
    return path
