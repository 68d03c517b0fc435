"""Finding who handed in what: as nbgrader, Canvas and Moodle lay it out, or a folder or file per student."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grading.core import texts
from grading.core.errors import GradingError
from grading.lms.roster import Roster, Sender, Student

STUDENT = re.compile(r"[A-Za-z0-9._@-]{1,64}")
# jane_doe_LATE_4711_9999_name.ipynb: a name without blanks, the user's number, the file's. LATE where it is.
CANVAS = re.compile(r"(?:(?P<name>.*?)_)??(?:LATE_)?(?P<key>\d+|anon_\w+?)_(?P<file>\d+)_(?P<rest>.+\.ipynb)")
# Jane Doe_4711_assignsubmission_file_, a folder or the beginning of a file's name.
MOODLE = re.compile(r"(?P<name>.+)_(?P<key>\d+)_assignsubmission_file(?:_(?P<rest>.*))?")
AGAIN = re.compile(r"[-_ ]?\(?\d{1,3}\)?")  # what Canvas, Moodle and browsers add to a name that is there


@dataclass(frozen=True)
class Submission:
    """One student's files of one lab: notebook name → path. `refused` says why it is not looked at."""

    student: str
    notebooks: dict[str, Path]
    folder: Path
    who: Student
    refused: str = ""


@dataclass(frozen=True)
class _Delivery:
    """What one entry of a folder holds: who sent it, and notebooks by the name that the sender gave them."""

    sender: Sender
    files: tuple[tuple[str, Path], ...]
    folder: Path


def find_submissions(
    folder: Path, lab: str, notebooks: Sequence[str], roster: Roster, called: Path | None = None
) -> list[Submission]:
    """All submissions under `folder`, by student, in order.

    ``folder/STUDENT/LAB/NAME.ipynb`` (nbgrader), ``folder/STUDENT/NAME.ipynb``, ``folder/STUDENT.ipynb``, or
    what Canvas and Moodle make of "download all submissions". Messages say `called` for a folder unpacked.
    """
    if not folder.is_dir():
        raise GradingError(
            f"no folder {folder}, nor a zip file of that name: give the one that holds the submissions"
        )
    deliveries = list(_deliveries(_inner(folder, lab, notebooks), lab, notebooks, roster))
    if not deliveries:
        raise GradingError(
            f"no submission in {called or folder}: expected STUDENT/{lab}/{notebooks[0]}.ipynb"
        )
    together: dict[object, list[_Delivery]] = {}  # an LMS sends several files of one student one by one
    for number, delivery in enumerate(deliveries):
        together.setdefault(delivery.sender if delivery.sender.lms else number, []).append(delivery)
    found: dict[str, Submission] = {}
    for parts in together.values():
        submission = _submission(parts, notebooks, roster, set(found))
        found[submission.student] = submission
    return [found[student] for student in sorted(found)]


def _inner(folder: Path, lab: str, notebooks: Sequence[str]) -> Path:
    """A zip often holds one folder that holds everything."""
    entries = [e for e in folder.iterdir() if not e.name.startswith(".")]
    if (
        len(entries) != 1
        or entries[0].is_symlink()
        or not entries[0].is_dir()
        or MOODLE.fullmatch(entries[0].name)
    ):
        return folder
    (only,) = entries
    students = {only / lab, *(only / f"{name}.ipynb" for name in notebooks)}
    inside = [e for e in only.iterdir() if e.is_dir() or e.suffix == ".ipynb"]
    return folder if not inside or students & set(inside) else only


def _deliveries(folder: Path, lab: str, notebooks: Sequence[str], roster: Roster) -> Iterator[_Delivery]:
    files: tuple[tuple[str, Path], ...]
    for entry in sorted(folder.iterdir()):
        single = entry.suffix == ".ipynb"
        if entry.name.startswith(".") or not (entry.is_dir() or single):
            continue
        if single and entry.stem in roster.students:
            yield _Delivery(Sender(entry.stem), ((f"{notebooks[0]}.ipynb", entry),), folder)
            continue
        if match := MOODLE.fullmatch(entry.name):
            sender = Sender(match["key"], "moodle", match["name"])
            files = ((match["rest"] or entry.name, entry),) if single else tuple(_notebooks_below(entry))
        elif single and (match := CANVAS.fullmatch(entry.name)):
            sender, files = Sender(match["key"], "canvas", match["name"] or ""), ((match["rest"], entry),)
        elif single:
            sender, files = Sender(entry.stem), ((f"{notebooks[0]}.ipynb", entry),)
        else:
            inner = entry / lab
            place = inner if inner.is_dir() and not inner.is_symlink() else entry
            sender, files = Sender(entry.name), tuple((p.name, p) for p in sorted(place.glob("*.ipynb")))
            yield _Delivery(sender, files, place)
            continue
        yield _Delivery(sender, files, entry.parent if single else entry)


def _notebooks_below(folder: Path) -> Iterator[tuple[str, Path]]:
    for place, folders, names in os.walk(folder):  # follows no links
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        yield from ((name, Path(place, name)) for name in sorted(names) if name.endswith(".ipynb"))


def _submission(
    parts: Sequence[_Delivery], notebooks: Sequence[str], roster: Roster, known: set[str]
) -> Submission:
    sender, folder = parts[0].sender, parts[0].folder
    files = [file for part in parts for file in part.files]
    student = roster.find(sender)
    name = student.id if student else str(sender)
    refused = ""
    if student is None and roster.path:
        words = texts.UNKNOWN_SENDER if sender.lms else texts.UNKNOWN_STUDENT
        refused = words.format(roster=roster.path.name, lms=sender.lms, key=sender.key)
    elif not STUDENT.fullmatch(name) or name.startswith("."):
        refused = "the name is no student id (letters, digits and . _ @ -)"
    elif name in known:
        refused, name = texts.HANDED_IN_TWICE.format(student=name), f"{sender} again"
    return Submission(
        name, dict(_chosen(files, notebooks, bool(sender.lms))), folder, student or Student(name), refused
    )


def _chosen(
    files: Sequence[tuple[str, Path]], notebooks: Sequence[str], lms: bool
) -> Iterator[tuple[str, Path]]:
    """The file for each notebook of the lab: by its name, or the only one where names got lost on the way."""
    for notebook in notebooks:
        if same := [(_number(name, notebook), path) for name, path in files if _is(name, notebook)]:
            yield notebook, max(same)[1]
        elif lms and len(notebooks) == len(files) == 1:
            yield notebook, files[0][1]


def _is(name: str, notebook: str) -> bool:
    stem = name.removesuffix(".ipynb")
    return stem == notebook or (stem.startswith(notebook) and bool(AGAIN.fullmatch(stem[len(notebook) :])))


def _number(name: str, notebook: str) -> tuple[int, str]:
    """Later files have higher numbers: those that were added to the name, and Canvas's own."""
    digits = re.findall(r"\d+", name.removesuffix(".ipynb")[len(notebook) :])
    return int(next(iter(digits), 0)), name
