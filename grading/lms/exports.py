"""Grades in the layouts that learning management systems read back.

Canvas: instructure/canvas-lms, lib/gradebook_importer.rb asks for Student, ID and Section before the
assignments, and skips a row with "Points Possible". Moodle: mod/assign/feedback/offline/importgradeslib.php
asks for Identifier, Grade and "Last modified (grade)" (in the site's language; these are the English names).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from grading.core.course import Course
from grading.core.verdicts import write_whole
from grading.lms.roster import Student

Row = dict[str, object]


@dataclass(frozen=True)
class Grade:
    """What one student has in a lab. Without points there is no verdict, and the LMS keeps what it has."""

    student: Student
    points: float | None
    of: float
    comment: str = ""


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


def canvas(grades: Iterable[Grade], title: str) -> str:
    """For Canvas: Gradebook → Import. A title like ``Memory (9876)`` names an assignment by its number."""
    grades = list(grades)
    of = f"{grades[0].of:g}" if grades else ""
    fields = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section", title)
    rows: list[Row] = [{"Student": "    Points Possible", title: of}]
    rows += [
        {
            "Student": g.student.name or g.student.id,
            "ID": g.student.canvas,
            "SIS Login ID": g.student.id,
            "Section": g.student.section,
            title: _number(g.points),
        }
        for g in grades
    ]
    return as_csv(fields, rows)


def moodle(grades: Iterable[Grade], title: str) -> str:
    """For Moodle: the assignment's grading worksheet, with "allow updating records" ticked."""
    rows: list[Row] = [
        {
            "Identifier": f"Participant {g.student.moodle}",
            "Full name": g.student.name,
            "Email address": g.student.email,
            "Status": "",
            "Grade": _number(g.points),
            "Maximum Grade": _number(g.of),
            "Grade can be changed": "Yes",
            "Last modified (grade)": "-",
            "Feedback comments": g.comment,
        }
        for g in grades
        if g.student.moodle
    ]
    fields = (
        "Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade",
        "Grade can be changed", "Last modified (grade)", "Feedback comments",
    )  # fmt: skip
    return as_csv(fields, rows)


def _number(points: float | None) -> str:
    return "" if points is None else f"{points:.2f}"


LAYOUTS: dict[str, Callable[[Iterable[Grade], str], str]] = {"canvas": canvas, "moodle": moodle}


def write(course: Course, lab: str, layout: str, grades: Iterable[Grade], title: str = "") -> Path:
    """Write ``grades-LAB-LAYOUT.csv`` beside grades.csv; returns its path."""
    path = course.grades.with_name(f"grades-{lab}-{layout}.csv")
    write_whole(path, LAYOUTS[layout](grades, title or lab))
    return path
