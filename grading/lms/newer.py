"""Files that cannot be read, handed in after one that can: the earlier one counts, and a person decides.

What was set aside is noted beside the gradebook, so that every run names it until another file comes, or
until ``grade --keep STUDENT`` says that the earlier one counts for good.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from grading.core import texts
from grading.core.commands import guess
from grading.core.course import Course
from grading.core.errors import GradingError, NotebookError
from grading.core.graft import graft
from grading.core.notebooks import read_submitted
from grading.core.tasks import Lab
from grading.core.verdicts import write_whole


def trouble(lab: Lab, notebook: str, path: Path) -> str:
    """Why a file is no submission of a notebook; empty where it is one."""
    try:
        graft(lab.notebooks[notebook], read_submitted(path), notebook, lab.name)
    except NotebookError as error:
        return str(error)
    return ""


def set_aside(course: Course, lab: str, student: str, notebook: str, path: Path, why: str) -> None:
    """Note a file that does not take the place of the earlier one. One that a person has settled stays so."""
    note = _note(course, lab, student, notebook)
    same = "" if path.is_symlink() or not path.is_file() else hashlib.sha256(path.read_bytes()).hexdigest()
    if _read(note).get("sha256") != same:
        note.parent.mkdir(parents=True, exist_ok=True)
        write_whole(note, json.dumps({"why": texts.clean(why), "sha256": same, "settled": False}))


def drop(course: Course, lab: str, student: str, notebook: str) -> None:
    """A file that can be read has come: nothing is open any more."""
    _note(course, lab, student, notebook).unlink(missing_ok=True)


def keep(course: Course, lab: str, students: Collection[str]) -> None:
    """The earlier files of these students count for good. Raises GradingError where nothing is open."""
    waiting = open_ones(course, lab)
    for student in students:
        if student not in waiting:
            raise GradingError(
                f"--keep {student}{guess(student, waiting)}: no newer file of this student in {lab} was left "
                f"unread. {_waiting(waiting)}"
            )
        for note in _of(course, lab, student):
            write_whole(note, json.dumps({**_read(note), "settled": True}))


def _waiting(students: Collection[str]) -> str:
    return f"Such files are there of {texts.some(sorted(students))}" if students else "There is no such file"


def open_ones(course: Course, lab: str) -> dict[str, str]:
    """Why a newer file of a student cannot be read, by student, for all whom nobody has settled yet."""
    found: dict[str, str] = {}
    for note in sorted((course.unread / lab).glob("*@*.json")):
        said = _read(note)
        if said and not said.get("settled"):
            found[note.name.rpartition("@")[0]] = str(said.get("why", ""))
    return found


def noted(course: Course, lab: str) -> set[str]:
    """The students whose earlier files count, settled or not."""
    return {note.name.rpartition("@")[0] for note in (course.unread / lab).glob("*@*.json")}


def _note(course: Course, lab: str, student: str, notebook: str) -> Path:
    """Not beside what was handed in, where a student could write it, too."""
    return course.unread / lab / f"{student}@{notebook}.json"


def _of(course: Course, lab: str, student: str) -> Iterator[Path]:
    folder = course.unread / lab
    yield from (note for note in sorted(folder.glob("*@*.json")) if note.name.rpartition("@")[0] == student)


def _read(note: Path) -> dict[str, Any]:
    with contextlib.suppress(OSError, ValueError, TypeError):
        return dict(json.loads(note.read_text(encoding="utf-8")))
    return {}
