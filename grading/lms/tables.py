"""Tables as CSV, and `grades.csv`: a row for each student and lab, made from the table of `final.py`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from grading.core.course import Course
from grading.core.verdicts import write_whole

FIELDS = (
    "student", "name", "lab", "points", "by_hand", "late", "why", "total", "of", "state", "reason",
    "handed_in_by",
)  # fmt: skip


def no_formula(value: object) -> object:
    """A spreadsheet would run a text that begins like a formula."""
    dangerous = ("=", "+", "-", "@", "\t", "\r")
    return f"'{value}" if isinstance(value, str) and value.startswith(dangerous) and value != "-" else value


def as_csv(fields: Iterable[str], rows: Iterable[Mapping[str, object]]) -> str:
    """CSV without formulas."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(fields), extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: no_formula(value) for key, value in row.items()})
    return text.getvalue()


def read_grades(course: Course) -> list[dict[str, str]]:
    """The rows of grades.csv; none of a file that has other columns."""
    if not course.grades.exists() or not _is_ours(course.grades):
        return []
    with course.grades.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _is_ours(table: Path) -> bool:
    with table.open(newline="", encoding="utf-8", errors="replace") as file:
        return {"student", "lab"} <= set(csv.DictReader(file).fieldnames or ())


def write_grades(course: Course, labs: Iterable[str], rows: Sequence[Mapping[str, object]]) -> None:
    """Replace the rows of these labs in grades.csv; those of other labs stay.

    A file of that name with other columns is somebody's: it is put aside.
    """
    labs = set(labs)
    kept = [row for row in read_grades(course) if row["lab"] not in labs]
    if course.grades.exists() and not _is_ours(course.grades):
        course.grades.replace(course.put_aside)
    ordered = sorted([*kept, *rows], key=lambda r: (str(r["lab"]), str(r["student"])))
    write_whole(course.grades, as_csv(FIELDS, ordered))
