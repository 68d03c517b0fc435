"""Feedback on its way back to students: zips that Moodle and Canvas take, and letters for a mail program.

Moodle: mod/assign/feedback/file/importziplib.php reads a participant's number from the name of a folder,
``NAME_NUMBER_assignsubmission_file_`` (versions before 4.1 want the last underscore). Canvas: "Re-upload
submissions" (Assignment#generate_comments_from_files) reads from a file's name a user's number and that of a
file which this user handed in, and attaches the page to a comment, of the whole group where the assignment is
one for groups. Its gradebook's import takes no comments.
"""

from __future__ import annotations

import os
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from email.headerregistry import Address
from email.message import EmailMessage
from pathlib import Path

from grading.core import texts
from grading.core.course import Course
from grading.core.errors import GradingError
from grading.core.tasks import Lab
from grading.core.verdicts import Store
from grading.lms import submissions
from grading.lms.exports import exported
from grading.lms.final import MISSING, Final, exercises

NEEDS = {
    "moodle": (
        "has no participant number of Moodle",
        "have no participant number of Moodle",
        'Grade the zip that Moodle\'s "Download all submissions" makes: its folders hold the numbers',
    ),
    "canvas": (
        "handed in no file that Canvas numbered",
        "handed in no file that Canvas numbered",
        'Grade the zip that Canvas\'s "Download submissions" makes: its files hold the numbers',
    ),
    "mail": (
        "has no e-mail address",
        "have no e-mail address",
        "Give a roster with a column email",
    ),
}


PASSED_ON = (
    "If the assignment in Canvas is one for groups, Canvas shows the page to all members; otherwise, add "
    "--feedback mail"
)


def write(
    course: Course, lab: Lab, way: str, grades: Iterable[Final], provisional: bool = False
) -> tuple[Path | None, list[str]]:
    """Write ``feedback-LAB-moodle.zip``, ``feedback-LAB-canvas.zip``, or a letter for each student into
    ``feedback-LAB-mail``; `way` is ``moodle``, ``canvas`` or ``mail``.

    Who has a final grade gets feedback, with `provisional` everybody who handed in. Returns the path, None
    where no grade is final yet, and lines about those who get none. Raises GradingError where nobody can be
    reached in this way.
    """
    wanted, unfinished = [], []
    for grade in grades:
        if exported(grade, provisional) is not None:
            wanted.append(grade)
        elif grade.state != MISSING:
            unfinished.append(f"{grade.who.id} ({grade.state})")
    reached = [grade for grade in wanted if REACHED[way](grade)]
    unreached = [grade for grade in wanted if grade not in reached]
    passed_on = [grade for grade in unreached if way == "canvas" and grade.by in {g.who.id for g in reached}]
    unreached = [grade for grade in unreached if grade not in passed_on]
    one, several, advice = NEEDS[way]
    if unreached and not reached:
        why = texts.number(unreached, one, several)
        raise GradingError(f"no feedback for {way} was written, because {why}. {advice}")
    path = course.home / f"feedback-{lab.name}-{way}{'' if way == 'mail' else '.zip'}"
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)  # it could tell other points
    if not reached:
        return None, ["no grade is final yet, so there is no feedback to hand back"]
    files = [entry for grade in reached for entry in FILES[way](course, lab, grade)]
    _write_folder(path, files) if way == "mail" else _write_zip(path, files)
    told = []
    if unreached:
        why = texts.number(unreached, f"{one}, and gets no feedback", f"{several}, and get no feedback")
        told.append(f"{why}: {texts.some([grade.who.id for grade in unreached])}. {advice}")
    if passed_on:
        named = texts.some([f"{grade.who.id} (by {grade.by})" for grade in passed_on])
        told.append(f"handed in by another member of the group: {named}. {PASSED_ON}")
    if unfinished:
        why = texts.number(
            unfinished, "is not final, and gets no feedback yet", "are not final, and get no feedback yet"
        )
        told.append(f"{why}: {texts.some(unfinished)}")
    return path, told


def pages(course: Course, lab: Lab, grade: Final) -> Iterator[Path]:
    """The student's feedback, a page for each notebook."""
    for name in lab.notebooks:
        if (page := course.feedback / grade.holder / lab.name / f"{name}.html").is_file():
            yield page


def _for_moodle(course: Course, lab: Lab, grade: Final) -> Iterator[tuple[str, bytes]]:
    name = (grade.who.name or grade.who.id).replace("_", " ").replace("/", " ").lstrip(".~ ")
    folder = f"{texts.clean(name, 60)}_{grade.who.moodle}_assignsubmission_file_"
    for page in pages(course, lab, grade):
        yield f"{folder}/{page.name}", page.read_bytes()


def _for_canvas(course: Course, lab: Lab, grade: Final) -> Iterator[tuple[str, bytes]]:
    for page in pages(course, lab, grade):
        yield f"{_canvas(grade)}{page.name}", page.read_bytes()


def _canvas(grade: Final) -> str:
    """How the name of a file must begin that goes to this student; empty where Canvas gave no numbers."""
    match = submissions.CANVAS.fullmatch(grade.sent_as)
    if not match or not match["key"].isdigit():
        return ""
    return "_".join(filter(None, (match["name"], match["key"], match["file"]))) + "_"


def _for_mail(course: Course, lab: Lab, grade: Final) -> Iterator[tuple[str, bytes]]:
    message = EmailMessage()
    message["To"] = _address(grade)
    message["Subject"] = f"{lab.name}: {grade.total:g} of {grade.of:g} points"
    message["X-Unsent"] = "1"  # mail programs open it as a draft
    message.set_content(letter(course, lab, grade))
    for page in pages(course, lab, grade):
        message.add_attachment(page.read_bytes(), "text", "html", filename=page.name)
    yield f"{grade.who.id}.eml", message.as_bytes()


def _address(grade: Final) -> Address | None:
    """None for what is no address."""
    try:
        return Address(texts.clean(grade.who.name, 60), addr_spec=grade.who.email)
    except (ValueError, IndexError):
        return None


def letter(course: Course, lab: Lab, grade: Final) -> str:
    """What a student reads in the mail: the points of each exercise, and the first reason for a lost one."""
    names, reasons = exercises(lab), _reasons(course, lab, grade)
    wide = max(map(len, names.values()), default=0)
    rows = [f"Hello {texts.clean(grade.who.name or grade.who.id, 60)},", "", f"{lab.name}:", ""]
    for place, name in names.items():
        if cell := grade.cells.get(place):
            waits = "a person has still to look at it" if cell.waits else ""
            why = waits or (reasons.get(place, "") if cell.points < cell.of else "")
            rows.append(f"  {name:<{wide}}  {cell.points:g} of {cell.of:g}  {why}".rstrip())
    rows.append("")
    if grade.late or grade.why:
        rows.append(f"Time: {texts.clean(grade.why)} ({grade.late:g} points).")
    rows.append(f"Together: {grade.total:g} of {grade.of:g} points.")
    if not grade.is_final:
        rows.append("This is not final.")
    rows += ["", "The attached page has your answers, with the reason for each lost point.", ""]
    return "\n".join(rows)


def _reasons(course: Course, lab: Lab, grade: Final) -> Mapping[tuple[str, str], str]:
    store, found = Store(course.verdicts), {}
    for name in lab.notebooks:
        verdict = store.get(grade.holder, lab.name, name)
        for each in verdict.exercises if verdict else ():
            found[name, each.cell] = texts.clean(each.reason, 120)
    return found


def _write_zip(path: Path, files: Sequence[tuple[str, bytes]]) -> None:
    new = path.with_name(f".{path.name}")
    mine = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)  # grades are no other user's business
    with os.fdopen(mine, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    new.replace(path)


def _write_folder(path: Path, files: Sequence[tuple[str, bytes]]) -> None:
    path.mkdir(parents=True, mode=0o700)
    for name, content in files:
        (path / name).write_bytes(content)


REACHED: dict[str, Callable[[Final], object]] = {
    "moodle": lambda grade: grade.who.moodle,
    "canvas": _canvas,
    "mail": _address,
}
FILES: dict[str, Callable[[Course, Lab, Final], Iterator[tuple[str, bytes]]]] = {
    "moodle": _for_moodle,
    "canvas": _for_canvas,
    "mail": _for_mail,
}
