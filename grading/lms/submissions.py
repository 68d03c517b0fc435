"""Finding who handed in what: as nbgrader, Canvas and Moodle lay it out, or a folder or file per student."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grading.core import texts
from grading.core.commands import guess
from grading.core.course import Course
from grading.core.errors import GradingError
from grading.core.notebooks import LARGEST_NOTEBOOK
from grading.core.verdicts import write_whole
from grading.lms import archives
from grading.lms.late import STAMP
from grading.lms.roster import Roster, Sender, Student

STUDENT = re.compile(r"[A-Za-z0-9._@-]{1,64}")
# jane_doe_LATE_4711_9999_name.ipynb: a name without blanks, the user's number, the file's. LATE where it is.
CANVAS = re.compile(
    r"(?:(?P<name>.*?)_)??(?P<late>LATE_)?(?P<key>\d+|anon_\w+?)_(?P<file>\d+)_(?P<rest>.+\.\w{1,8})"
)
# Jane Doe_4711_assignsubmission_file_, a folder or the beginning of a file's name.
MOODLE = re.compile(r"(?P<name>.+)_(?P<key>\d+)_assignsubmission_(?:file|onlinetext)(?:_(?P<rest>.*))?")
MARK = re.compile(rb'"grade_id"\s*:\s*"([^"]{1,100})"')
AGAIN = re.compile(r"[-_ ]?\(?\d{1,3}\)?")  # what Canvas, Moodle and browsers add to a name that is there


REFUSED, UNMATCHED = "refused", "unmatched"


@dataclass(frozen=True)
class Refusal:
    """Why a file is not graded. One that is `unmatched` may be a student's whom the roster does not have yet,
    so later runs name it, too.
    """

    reason: str
    unmatched: bool = False

    @property
    def state(self) -> str:
        return UNMATCHED if self.unmatched else REFUSED

    def row(self, sender: str, lab: str) -> dict[str, object]:
        """As `grades.csv` has it."""
        return {"student": sender, "lab": lab, "state": self.state, "reason": texts.clean(self.reason)}


@dataclass(frozen=True)
class Submission:
    """One student's files of one lab: notebook name → path. `refused` says why it is not looked at.

    `others` names the files that are none of the lab's notebooks, `misnamed` those that have another one's
    name; `late` says that Canvas calls it late, and `sent_as` what Canvas or Moodle called the file or
    folder.
    """

    student: str
    notebooks: dict[str, Path]
    folder: Path
    who: Student
    refused: Refusal | None = None
    others: tuple[str, ...] = ()
    late: bool = False
    sent_as: str = ""
    misnamed: tuple[str, ...] = ()


Files = tuple[tuple[str, Path], ...]  # by the name that the sender gave them


@dataclass(frozen=True)
class _Delivery:
    """What one entry of a folder holds: who sent it, and its files, zips unpacked. A `stray` is nobody's."""

    sender: Sender
    files: Files
    folder: Path
    late: bool = False
    stray: bool = False
    sent_as: str = ""


def _note(course: Course, lab: str, student: str) -> Path:
    """Not beside what was handed in, where a student could write it, too."""
    return course.senders / lab / f"{student}@.json"


def remember_sender(course: Course, lab: str, submission: Submission) -> None:
    """Keep what an LMS called a student's file or folder, so that feedback finds its way back."""
    if submission.sent_as and submission.sent_as != sent_as(course, lab, submission.student):
        note = _note(course, lab, submission.student)
        note.parent.mkdir(parents=True, exist_ok=True)
        write_whole(note, json.dumps(submission.sent_as))


def sent_as(course: Course, lab: str, student: str) -> str:
    """What an LMS called what a student handed in; empty where it came in another way."""
    try:
        return str(json.loads(_note(course, lab, student).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return ""


def sender_of(called: str) -> str:
    """Who sent what an LMS called so, as messages name a sender that is nobody's; empty for no such name."""
    for lms, pattern in (("moodle", MOODLE), ("canvas", CANVAS)):
        if match := pattern.fullmatch(called):
            return str(Sender(match["key"], lms, match["name"] or ""))
    return ""


def by_canvas(course: Course, lab: str, student: str) -> bool:
    """Whether the student's latest file came from Canvas."""
    return bool(CANVAS.fullmatch(sent_as(course, lab, student)))


def called_late(course: Course, lab: str, student: str) -> bool:
    """Whether Canvas called the student's latest file late, in whichever run it came."""
    return is_late(sent_as(course, lab, student))


def is_late(called: str) -> bool:
    """Whether a name of a file says that Canvas calls it late."""
    match = CANVAS.fullmatch(called)
    return bool(match and match["late"])


def find_submissions(
    folder: Path,
    lab: str,
    notebooks: Sequence[str],
    roster: Roster,
    called: Path | None = None,
    *,
    scratch: Path | None = None,
    other_labs: Collection[str] = (),
    released: Collection[str] = (),
    marks: Mapping[str, Collection[str]] | None = None,
) -> list[Submission]:
    """All submissions under `folder`, by student, in order. Each file is part of one, or refused by name.

    ``folder/STUDENT/LAB/NAME.ipynb`` (nbgrader), ``folder/STUDENT/labs/LAB/NAME.ipynb`` (a clone of the
    learners' repository), ``folder/STUDENT/NAME.ipynb``, ``folder/STUDENT.ipynb``, or what Canvas and Moodle
    make of "download all submissions". Messages say `called` for a folder unpacked. A student's zip is
    unpacked below `scratch`, an empty folder; without one it is only named. A folder that holds nothing
    but `other_labs` is somebody's who handed in those; folders that were `released` with the lab, such as
    its drawings, are passed over. With `marks`, the grade ids in each notebook, the cells of a file say which
    notebook it is where its name says nothing, or another. Raises GradingError where there is no folder, or
    nothing in it.
    """
    if not folder.is_dir():
        raise GradingError(
            f"no folder {folder}, nor a zip file of that name: give the one that holds the submissions"
        )
    reader = _Reader(lab, notebooks, roster, scratch, other_labs, released)
    deliveries = list(reader.deliveries(_inner(folder, lab, notebooks)))
    if all(delivery.stray for delivery in deliveries):
        raise GradingError(
            f"no submission in {called or folder}: expected STUDENT/{lab}/{notebooks[0]}.ipynb"
        )
    together: dict[object, list[_Delivery]] = {}  # an LMS sends several files of one student one by one
    for number, delivery in enumerate(deliveries):
        together.setdefault(delivery.sender if delivery.sender.lms else number, []).append(delivery)
    found: dict[str, Submission] = {}
    for parts in together.values():
        submission = _submission(parts, notebooks, marks or {}, roster, set(found))
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


@dataclass(frozen=True)
class _Reader:
    """Takes a folder apart, for one lab."""

    lab: str
    notebooks: Sequence[str]
    roster: Roster
    scratch: Path | None
    other_labs: Collection[str]
    released: Collection[str]

    def deliveries(self, folder: Path) -> Iterator[_Delivery]:
        """One for each entry of a folder."""
        for entry in _entries(folder):
            single, known = not entry.is_dir(), entry.stem in self.roster.students
            if match := MOODLE.fullmatch(entry.name):
                sender = Sender(match["key"], "moodle", match["name"])
                files = self._file(match["rest"] or entry.name, entry) if single else self._below(entry)
                yield _Delivery(sender, files, folder if single else entry, sent_as=entry.name)
            elif not single:
                yield from self._folder_of_a_student(entry)
            elif not known and (match := CANVAS.fullmatch(entry.name)):
                sender = Sender(match["key"], "canvas", match["name"] or "")
                files = self._file(match["rest"], entry)
                yield _Delivery(sender, files, folder, bool(match["late"]), sent_as=entry.name)
            elif known or entry.suffix in (".ipynb", ".zip"):
                name = f"{self.notebooks[0]}.ipynb" if entry.suffix == ".ipynb" else entry.name
                yield _Delivery(Sender(entry.stem), self._file(name, entry), folder)
            else:
                yield _Delivery(Sender(entry.name), (), folder, stray=True)

    def _folder_of_a_student(self, entry: Path) -> Iterator[_Delivery]:
        inner, cloned = entry / self.lab, entry / "labs" / self.lab
        place = next((p for p in (inner, cloned) if p.is_dir() and not p.is_symlink()), entry)
        inside = _entries(place)
        if place == entry and inside and all(e.is_dir() and e.name in self.other_labs for e in inside):
            return
        files: list[tuple[str, Path]] = []
        for each in inside:
            if each.is_dir() and each.name in self.released:
                continue
            if each.is_dir() and each.suffix != ".ipynb":
                files.append((f"{each.name} (a {'link' if each.is_symlink() else 'folder'})", each))
            else:
                files += self._file(each.name, each)
        if place == inner:  # what lies beside the lab's folder is only named
            files += ((f"../{e.name}", e) for e in _entries(entry) if not e.is_dir())
        yield _Delivery(Sender(entry.name), tuple(files), place)

    def _file(self, name: str, path: Path) -> Files:
        """A file, or what a zip holds; a zip in a zip is only named."""
        zipped = path.suffix.lower() == ".zip" and path.is_file() and not path.is_symlink()
        if not zipped or self.scratch is None or self.scratch in path.parents:
            return ((name, path),)
        inside = self.scratch / str(len(list(self.scratch.iterdir())))
        inside.mkdir()
        try:
            archives.unpack(path, inside, of_a_student=True)
        except GradingError:
            return ((f"{name} (cannot be unpacked)", path),)
        return self._below(inside) or ((f"{name} (empty)", path),)

    def _below(self, folder: Path) -> Files:
        """All files of a folder and those in it; no link is followed."""
        found: list[tuple[str, Path]] = []
        for place, folders, names in os.walk(folder):
            folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in self.released)
            for name in sorted(names):
                if not name.startswith(".") and name != STAMP:
                    found += self._file(name, Path(place, name))
        return tuple(found)


def _entries(folder: Path) -> list[Path]:
    """What a folder holds, in order, but for what is hidden and nbgrader's time stamp."""
    return [e for e in sorted(folder.iterdir()) if not e.name.startswith(".") and e.name != STAMP]


def _submission(
    parts: Sequence[_Delivery],
    notebooks: Sequence[str],
    marks: Mapping[str, Collection[str]],
    roster: Roster,
    known: set[str],
) -> Submission:
    sender, folder = parts[0].sender, parts[0].folder
    files = tuple(file for part in parts for file in part.files)
    cells_of = {path: _by_cells(path, marks) for name, path in files if marks and name.endswith(".ipynb")}
    student = roster.find(sender)
    name = student.id if student else str(sender)
    chosen = dict(_chosen(files, notebooks, cells_of, bool(sender.lms)))
    refused: Refusal | None = None
    a_hand_in = bool(chosen or sender.lms)  # and not what else lies in a folder
    if parts[0].stray:
        refused = Refusal(texts.STRAY)
    elif student is None and roster.path:
        words = texts.UNKNOWN_SENDER if sender.lms else texts.UNKNOWN_STUDENT
        near = guess(sender.key, roster.students)
        why = words.format(roster=roster.path.name, lms=sender.lms, key=sender.key, near=near)
        refused = Refusal(why, unmatched=a_hand_in)
    elif not STUDENT.fullmatch(name) or name.startswith("."):
        refused = Refusal(texts.NO_ID, unmatched=a_hand_in)
    elif name in known:
        refused, name = Refusal(texts.HANDED_IN_TWICE.format(student=name)), f"{sender} again"
    others = tuple(
        _described(file, cells_of.get(path, ""), chosen)
        for file, path in files
        if path not in chosen.values()
    )
    misnamed = tuple(
        f"{file} has the cells of {notebook}"
        for file, path in files
        for notebook in chosen
        if chosen[notebook] == path and any(_is(file, other) for other in notebooks if other != notebook)
    )
    late = any(part.late for part in parts)
    held = [part for part in parts if any(path in chosen.values() for _, path in part.files)]
    called = (held or list(parts))[-1].sent_as
    return Submission(name, chosen, folder, student or Student(name), refused, others, late, called, misnamed)


def _described(file: str, cells_of: str, chosen: Collection[str]) -> str:
    """A file that is not graded, as messages name it: with why, where its name does not say so."""
    if any(_is(file, notebook) for notebook in chosen) and file.endswith(".ipynb"):
        return f"{file} (there is a later one)"
    return f"{file} (the cells of {cells_of})" if cells_of and not _is(file, cells_of) else file


def _chosen(
    files: Files, notebooks: Sequence[str], cells_of: Mapping[Path, str], lms: bool
) -> Iterator[tuple[str, Path]]:
    """The file for each notebook of the lab: by its name, or the only one where names got lost on the way.

    A name does not count where the file has the cells of another of the lab's notebooks.
    """
    readable = [(name, path) for name, path in files if name.endswith(".ipynb")]
    for notebook in notebooks:
        fits = [(name, path) for name, path in readable if cells_of.get(path) in (None, "", notebook)]
        alike = [path for _, path in fits if cells_of.get(path) == notebook]
        if same := [(_number(name, notebook), path) for name, path in fits if _is(name, notebook)]:
            yield notebook, max(same)[1]
        elif len(alike) == 1:
            yield notebook, alike[0]
        elif lms and len(notebooks) == len(readable) == 1:
            yield notebook, readable[0][1]


def _by_cells(path: Path, marks: Mapping[str, Collection[str]]) -> str:
    """The notebook most of whose cells a file has; empty where that is none, or none more than another."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST_NOTEBOOK:
        return ""
    held = {mark.decode("utf-8", "replace") for mark in MARK.findall(path.read_bytes())}
    counts = Counter({notebook: len(held.intersection(ids)) for notebook, ids in marks.items()})
    (best, most), *rest = counts.most_common(2)
    return best if most > (rest[0][1] if rest else 0) else ""


def lab_of(submission: Submission, labs: Mapping[str, Mapping[str, Collection[str]]]) -> str:
    """The lab whose notebooks somebody handed in: by the cells of a file, or else by its name.

    `labs` has the grade ids in each notebook of each lab. Empty where no file says it, or two labs fit.
    """
    marks = {
        f"{lab}/{notebook}": ids for lab, notebooks in labs.items() for notebook, ids in notebooks.items()
    }
    by_cells = {_by_cells(path, marks).partition("/")[0] for path in submission.notebooks.values()}
    names = [(lab, notebook) for lab, notebooks in labs.items() for notebook in notebooks]
    by_name = {lab for lab, notebook in names for file in submission.others if _is(Path(file).name, notebook)}
    found = by_cells - {""} or by_name
    return found.pop() if len(found) == 1 else ""


def marks_of(released: Path) -> frozenset[str]:
    """The grade ids in a released notebook, found as in what students hand in."""
    return frozenset(mark.decode("utf-8", "replace") for mark in MARK.findall(released.read_bytes()))


def _is(name: str, notebook: str) -> bool:
    stem = name.removesuffix(".ipynb")
    return stem == notebook or (stem.startswith(notebook) and bool(AGAIN.fullmatch(stem[len(notebook) :])))


def _number(name: str, notebook: str) -> tuple[int, str]:
    """Later files have higher numbers: those that were added to the name, and Canvas's own."""
    digits = re.findall(r"\d+", name.removesuffix(".ipynb")[len(notebook) :])
    return int(next(iter(digits), 0)), name
