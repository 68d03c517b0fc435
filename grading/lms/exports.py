"""Grades in the layouts that learning management systems read back.

Canvas: instructure/canvas-lms, lib/gradebook_importer.rb asks for Student, ID and Section before the
assignments, and skips a row with "Points Possible". Moodle: mod/assign/feedback/offline/importgradeslib.php
asks for Identifier, Grade and "Last modified (grade)" (in the site's language; these are the English names).
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from grading.core import texts
from grading.core.course import Course
from grading.core.errors import GradingError
from grading.core.verdicts import write_whole
from grading.lms.final import MISSING, Final
from grading.lms.roster import remember, remembered
from grading.lms.tables import as_csv

Row = dict[str, object]
CANVAS_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")


def exported(grade: Final, provisional: bool = False) -> float | None:
    """The points that an LMS gets: those of a final grade, or with `provisional` of everybody who handed in.

    None leaves the cell empty, and the LMS keeps what it has.
    """
    return grade.total if grade.is_final or (provisional and grade.cells) else None


def canvas(grades: Iterable[Final], title: str, provisional: bool = False) -> str:
    """For Canvas: Gradebook → Import. A title like ``Memory (9876)`` names an assignment by its number.

    Before it are the columns of the export that is the roster, as they are there: Canvas knows students by
    them.
    """
    grades = list(grades)
    of = f"{grades[0].of:g}" if grades else ""
    lead = next((tuple(g.who.row) for g in grades if g.who.row), CANVAS_COLUMNS)
    rows: list[Row] = [{"Student": "    Points Possible", title: of}]
    for g in grades:
        known: Row = {
            "Student": g.who.name or g.who.id,
            "ID": g.who.canvas,
            "SIS Login ID": g.who.id,
            "Section": g.who.section,
        }
        rows.append({**known, **g.who.row, title: _number(exported(g, provisional))})
    return as_csv((*lead, title), rows)


def moodle(grades: Iterable[Final], title: str, provisional: bool = False) -> str:
    """For Moodle: the assignment's grading worksheet, with "allow updating records" ticked."""
    rows: list[Row] = [
        {
            "Identifier": f"Participant {g.who.moodle}",
            "Full name": g.who.name,
            "Email address": g.who.email,
            "Status": "",
            "Grade": _number(exported(g, provisional)),
            "Maximum Grade": _number(g.of),
            "Grade can be changed": "Yes",
            "Last modified (grade)": "-",
            "Feedback comments": _comment(g) if provisional else "",
        }
        for g in grades
        if g.who.moodle
    ]
    fields = (
        "Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade",
        "Grade can be changed", "Last modified (grade)", "Feedback comments",
    )  # fmt: skip
    return as_csv(fields, rows)


def _number(points: float | None) -> str:
    return "" if points is None else f"{points:.2f}"


def _comment(grade: Final) -> str:
    """Why a grade is not final."""
    if grade.is_final or grade.state == MISSING:
        return ""
    return ": ".join(filter(None, (grade.state, grade.reason)))


LAYOUTS: dict[str, Callable[[Iterable[Final], str, bool], str]] = {"canvas": canvas, "moodle": moodle}


def title_of(course: Course, lab: str, given: str = "") -> str:
    """What Canvas calls the lab's assignment: as given now or in an earlier run, or the lab's name."""
    titles = remembered(course.titles)
    if given and titles.get(lab) != given:
        remember(course.titles, lab, given)
    return given or titles.get(lab, lab)


def write(
    course: Course, lab: str, layout: str, grades: Iterable[Final], title: str = "", provisional: bool = False
) -> Path:
    """Write ``grades-LAB-LAYOUT.csv`` beside grades.csv; returns its path.

    Raises GradingError where Moodle could match nobody.
    """
    grades = list(grades)
    if layout == "moodle" and not any(grade.who.moodle for grade in grades):
        raise GradingError(
            "no file for Moodle was written, because nobody has a participant number. Download the grading "
            "worksheet of the assignment from Moodle and give it with --roster"
        )
    path = _path(course, lab, layout)
    write_whole(path, LAYOUTS[layout](grades, title_of(course, lab, title), provisional))
    return path


def changed(course: Course, lab: str, grades: Iterable[Final]) -> list[str]:
    """Whose grade is final, and not what the files for an LMS say that were written before."""
    found = {}
    for layout, path in written(course, lab).items():
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        title = "Grade" if layout == "moodle" else next(reversed(rows[0]), "") if rows else ""
        keys = ("Identifier",) if layout == "moodle" else ("ID", "SIS Login ID", "Student")
        said = {next(filter(None, (row.get(key) for key in keys)), ""): row[title] for row in rows}
        for each in grades:
            who = each.who
            key = f"Participant {who.moodle}" if layout == "moodle" else who.canvas or who.id
            if said.get(key, number := _number(exported(each))) != number and number:
                found[each.who.id] = number
    return list(found)


def written(course: Course, lab: str) -> dict[str, Path]:
    """The files with a lab's grades that were written for an LMS, by layout."""
    paths = {layout: _path(course, lab, layout) for layout in LAYOUTS}
    return {layout: path for layout, path in paths.items() if path.is_file()}


def _path(course: Course, lab: str, layout: str) -> Path:
    return course.grades.with_name(f"grades-{lab}-{layout}.csv")


def left_out(layout: str, grades: Iterable[Final], provisional: bool = False) -> list[str]:
    """What a person should know of a file that was written: whose cells are empty in it, and why."""
    numberless, unfinished = [], []
    for grade in grades:
        if layout == "moodle" and not grade.who.moodle:
            numberless.append(grade.who.id)
        elif grade.state != MISSING and not grade.is_final:
            unfinished.append(f"{grade.who.id} ({grade.state})")
    absent = ("has no participant number, so it is not", "have no participant number, so they are not")
    open_ = ("is not final, so its cell is empty", "are not final, so their cells are empty")
    if provisional:
        open_ = ("is not final, but included", "are not final, but included")
    told = []
    if numberless:
        told.append(f"{texts.number(numberless, *absent)} in the file: {texts.some(numberless)}")
    if unfinished:
        told.append(f"{texts.number(unfinished, *open_)}: {texts.some(unfinished)}")
    return told


def unknown_title(title: str, titles: Sequence[str]) -> list[str]:
    """What a person should know of a title that is none of Canvas's assignments, where those are known."""
    if not titles or title in titles:
        return []
    has = texts.some([repr(each) for each in titles], 6)
    return [
        f"Canvas has no assignment '{title}', so the import would make a new one. Add --title and what "
        f"Canvas calls it; later runs remember it. It has {has}"
    ]
