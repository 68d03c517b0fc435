"""Points taken off for being late, by the rule in `course.toml`. nbgrader's gradebook keeps them as its own.

When something was handed in is what `timestamp.txt` beside it says: nbgrader's exchange writes it, and for
Moodle the class's worksheet has the time. Nothing is taken off what has no time.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.utils import parse_utc

from grading.core.course import Course
from grading.lms import settings

STAMP = "timestamp.txt"
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


def apply(course: Course, lab: str, students: Collection[str] | None = None) -> dict[str, float]:
    """Bring due dates, times and penalties of a lab in the gradebook up to the rule.

    Of `students`, or of everybody. Returns those whose penalty changed, with the points taken off now.
    Without a rule, or a due date of this lab, nothing is taken off, and what was is given back.
    """
    known = settings.read(course)
    due, changed = known.due.get(lab), {}
    with Gradebook(course.db_url) as book:
        try:
            assignment = book.find_assignment(lab)
        except MissingEntry:
            return {}
        if due:
            assignment.duedate = due
        for submitted in assignment.submissions:
            name = submitted.student_id
            if students is not None and name not in students:
                continue
            if when := handed_in_at(course.submitted / name / lab / STAMP):
                submitted.timestamp = when
            later = known.extra.get(lab, {}).get(name)
            submitted.extension = later - due if later and due else None
            share = 0.0
            if due and known.late and submitted.timestamp:
                share = known.late.share(submitted.timestamp - (later or due))
            before = after = 0.0
            for notebook in submitted.notebooks:
                before += notebook.late_submission_penalty or 0.0
                notebook.late_submission_penalty = round(share * notebook.score, 2)
                after += notebook.late_submission_penalty
            if abs(after - before) > 0.005:
                changed[name] = round(after, 2)
        book.db.commit()
    return changed
