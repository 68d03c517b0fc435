"""Points taken off for being late, by the rule in `course.toml`. nbgrader's gradebook keeps them as its own.

When something was handed in is what `timestamp.txt` beside it says: nbgrader's exchange writes it, and for
Moodle the class's worksheet has the time. Nothing is taken off what has no time. nbgrader's own plugin for
this sees one notebook's points and seconds, so it can know neither slip days nor a student's other labs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

from nbgrader.api import Assignment, Gradebook, MissingEntry, SubmittedAssignment
from nbgrader.utils import parse_utc
from sqlalchemy import select

from grading.core import texts
from grading.core.course import Course
from grading.lms import settings
from grading.lms.settings import Settings

STAMP = "timestamp.txt"
DAY = timedelta(days=1)
# How Moodle's worksheet writes times: strftimedaydatetime of lang/en/langconfig.php, or with 24 hours.
MOODLE_TIMES = ("%A, %d %B %Y, %I:%M %p", "%A, %d %B %Y, %H:%M")


def handed_in_at(path: Path) -> datetime | None:
    """The time in a `timestamp.txt`, in UTC; None where there is none, or none that can be read."""
    try:
        return parse_utc(path.read_text(encoding="utf-8").strip() or None)
    except (OSError, ValueError, OverflowError):
        return None


def write_stamp(path: Path, said: str, zone: tzinfo | None) -> None:
    """Write a `timestamp.txt` from what a roster says of when somebody handed in."""
    if when := moment(said, zone):
        path.write_text(f"{when.isoformat(sep=' ')} UTC\n", encoding="utf-8")


def moment(text: str, zone: tzinfo | None = None) -> datetime | None:
    """A time of Moodle's worksheet, or one like 2027-01-15T23:59, in UTC; None for what is none.

    `zone` is that of times without an offset: this machine's by default.
    """
    try:
        read = datetime.fromisoformat(text.strip())
        read = read.replace(tzinfo=zone) if zone and not read.tzinfo else read
        return read.astimezone(UTC).replace(tzinfo=None)
    except ValueError:
        pass
    for form in MOODLE_TIMES:
        try:
            read = datetime.strptime(text.strip(), form)
        except ValueError:
            continue
        local = read.replace(tzinfo=zone) if zone else read
        return local.astimezone(UTC).replace(tzinfo=None)
    return None


@dataclass(frozen=True)
class Charge:
    """What being late costs one student in one lab: a share of the points earned, slip days, and why."""

    share: float = 0.0
    slip: int = 0
    why: str = ""


Charges = dict[tuple[str, str], Charge]  # by student and lab


def charges(known: Settings, student: str, handed_in: Mapping[str, datetime]) -> dict[str, Charge]:
    """The charge of each lab that a student handed in, from the times in UTC.

    Labs have slip days in the order in which they were due for everybody. A slip day moves a due date by a
    day; no more are taken than make a hand-in be on time, and none where a lab is waived.
    """
    left = known.slip.days if known.slip and known.late else 0
    found = {}
    for lab in sorted(handed_in, key=lambda lab: (known.due.get(lab, datetime.max), lab)):
        found[lab] = charge = _charge(known, student, lab, handed_in[lab], left)
        left -= charge.slip
    return found


def untimed(known: Settings, lab: str, student: str) -> Charge:
    """The charge of a hand-in whose time nobody knows: none."""
    reason = known.waived.get(lab, {}).get(student)
    return Charge(why=f"waived: {reason}" if reason is not None and known.late and lab in known.due else "")


def _charge(known: Settings, student: str, lab: str, when: datetime, left: int) -> Charge:
    if (due := known.due_of(lab, student)) is None:
        return Charge()
    by, told = when - due[0], [due[1]] if due[1] else []
    rule, reason = known.late, known.waived.get(lab, {}).get(student)
    if by > timedelta(0):
        told.append(f"late by {_span(by)}")
    if reason is not None:
        return Charge(why="; ".join([*told, f"waived: {reason}"]))
    if rule is None or by <= rule.grace:
        return Charge(why="; ".join(told))
    needed = math.ceil((by - rule.grace) / DAY)
    slip = min(needed, left, known.slip.per_lab) if known.slip else 0
    share = rule.share(by - slip * DAY)
    if slip:
        told.append(f"{slip} slip day{'s' * (slip != 1)}, {left - slip} left")
    if share:
        told.append(f"{100 * share:g} % off")
    return Charge(share, slip, "; ".join(told))


def _span(time: timedelta) -> str:
    """``1 day 3 h 11 min``, as a student reckons it; a minute that has begun counts."""
    hours, minutes = divmod(math.ceil(time / timedelta(minutes=1)), 60)
    days, hours = divmod(hours, 24)
    parts = (days, f"day{'s' * (days != 1)}"), (hours, "h"), (minutes, "min")
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def of_everybody(course: Course, book: Gradebook, students: Collection[str] | None = None) -> Charges:
    """All charges by student and lab, from the times in the gradebook; of `students`, or of everybody."""
    known = settings.read(course)
    times = (
        select(SubmittedAssignment.student_id, Assignment.name, SubmittedAssignment.timestamp)
        .join(Assignment, SubmittedAssignment.assignment_id == Assignment.id)
        .where(SubmittedAssignment.timestamp.is_not(None))
    )
    if students is not None:
        times = times.where(SubmittedAssignment.student_id.in_(students))
    handed_in: dict[str, dict[str, datetime]] = {}
    for student, lab, when in book.db.execute(times):
        handed_in.setdefault(student, {})[lab] = when
    return {
        (student, lab): charge
        for student, labs in handed_in.items()
        for lab, charge in charges(known, student, labs).items()
    }


def doubt(course: Course, known: Settings, lab: str, student: str, said: str, called_late: bool) -> str:
    """Why nobody knows what being late costs a student in a lab; empty where it costs nothing or is known.

    `said` is the time that a roster has, `called_late` whether Canvas calls the file late. A hand-in of which
    neither is known counts as on time.
    """
    if known.late is None or lab not in known.due or student in known.waived.get(lab, {}):
        return ""
    if handed_in_at(course.submitted / student / lab / STAMP):
        return ""
    if said.strip() not in ("", "-") and moment(said, known.zone) is None:
        return texts.TIME_UNREADABLE
    return texts.LATE_UNKNOWN if called_late else ""


def apply(course: Course, lab: str, students: Collection[str] | None = None) -> None:
    """Bring due dates, times and penalties of a lab in the gradebook up to the rule.

    Of `students`, or of everybody. Without a rule, or a due date of this lab, nothing is taken off, and what
    was is given back.
    """
    known = settings.read(course)
    with Gradebook(course.db_url) as book:
        try:
            assignment = book.find_assignment(lab)
        except MissingEntry:
            return
        if lab in known.due:
            assignment.duedate = known.due[lab]
        chosen = [s for s in assignment.submissions if students is None or s.student_id in students]
        for submitted in chosen:
            place = course.submitted / submitted.student_id / lab
            if place.is_dir():
                submitted.timestamp = handed_in_at(place / STAMP)
        book.db.flush()
        found = of_everybody(course, book, students)
        for submitted in chosen:
            due = known.due_of(lab, submitted.student_id)
            later = due[0] - known.due[lab] if due else None
            submitted.extension = later or None
            share = found.get((submitted.student_id, lab), Charge()).share
            for notebook in submitted.notebooks:
                notebook.late_submission_penalty = round(share * notebook.score, 2)
        book.db.commit()
