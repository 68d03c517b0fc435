"""What is left for a person to do after a run, each with its command, from the gradebook."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from grading.core import texts
from grading.core.commands import ours
from grading.core.course import GRADEBOOK, Course
from grading.lms import exports, final, regrades
from grading.lms.classroom import ClassResult
from grading.lms.final import Final
from grading.lms.roster import times_of
from grading.lms.submissions import CANVAS, MOODLE, REFUSED

DOUBTS = {
    texts.LATE_UNKNOWN: (
        "nobody knows how late {number} came ({who}): write the times into a column {column} of the roster"
    ),
    texts.TIME_UNREADABLE: (
        "the roster's time of {number} cannot be read ({who}): write it there as 2027-01-17 22:10"
    ),
}


def left(
    course: Course, result: ClassResult, exported: Collection[str] = (), packed: Collection[str] = ()
) -> list[str]:
    """Lines for a terminal: what waits in this lab and in others. Never empty.

    `exported` and `packed` are what this run was asked for with ``--export`` and ``--feedback``.
    """
    stopped = course.unfinished_runs()
    tasks = [f"a run was stopped before its end; to go on: {ours('grade', run)}" for run in stopped]
    tasks += [*_of_lab(course, result), *_requests(course)]
    if result.table:
        tasks += _handing_out(course, result.lab.name, result.table, exported, packed)
    others = [
        f"{lab} ({words})"
        for lab, rows in result.others.items()
        if (words := _open(course, lab, rows, result.unmatched[lab]))
    ]
    if others:
        tasks.append(f"other labs: {texts.some(others)}")
    for lab in sorted({path.parent.name for path in course.verdicts.glob("*/*@*.json")} - {result.lab.name}):
        if lab not in result.others and (course.labs / lab).is_dir():
            tasks.append(f"the gradebook has nothing of {lab}, which was graded before: {ours('grade', lab)}")
    if not tasks:
        return [f"nothing is left to do for {result.lab.name}"]
    if course.database and course.database != os.environ.get(GRADEBOOK):
        tasks.insert(
            0,
            f"export {GRADEBOOK}=URL, as in --gradebook: formgrader and all commands read it",
        )
    return ["left to do:", *(f"  {number}. {task}" for number, task in enumerate(tasks, 1))]


def formgrader(course: Course) -> str:
    """The command that opens formgrader, to be typed in the folder in which this process is.

    Jupyter starts for root only when told so.
    """
    jupyter = os.path.relpath(Path(sys.executable).with_name("jupyter"), course.home)
    root = " --allow-root" if os.geteuid() == 0 else ""
    return f"(cd {shlex.quote(os.path.relpath(course.home))} && {shlex.quote(jupyter)} lab{root})"


def _of_lab(course: Course, result: ClassResult) -> Iterator[str]:
    lab, rows = result.lab.name, result.table
    rows = [row for row in rows if not row.by]  # what a group handed in waits once
    waiting = [row for row in rows if row.state not in (REFUSED, final.UNGRADED) and row.waiting]
    if number := sum(len(row.waiting) for row in waiting):
        words = "1 answer waits" if number == 1 else f"{number} answers wait"
        who = texts.some([row.who.id for row in waiting], 6)
        yield f"{words} for a person ({who}): {formgrader(course)}, then Formgrader, Manual Grading, {lab}"
    ungraded = [row for row in rows if row.state == final.UNGRADED]
    if ungraded:
        who = texts.some([f"{row.who.id}: {texts.clean(row.reason, 80)}" for row in ungraded], 3)
        have = "has" if len(ungraded) == 1 else "have"
        yield (
            f"{_number(len(ungraded))} {have} no verdict ({who}): ask for another file and grade it, "
            f"{ours('grade', lab, 'FOLDER')}, or give points: {formgrader(course)}"
        )
    if unread := [row for row in rows if row.newer]:
        who = texts.some([f"{row.who.id}: {texts.clean(row.newer, 80)}" for row in unread], 3)
        ids = " ".join(f"--keep {row.who.id}" for row in unread)
        yield (
            f"of {_number(len(unread))} a newer file cannot be read, so the earlier one counts ({who}): ask "
            f"for another file and grade it, {ours('grade', lab, 'FOLDER')}, or decide that the earlier one "
            f"counts, {ours('grade', lab, ids)}"
        )
    for doubt, words in DOUBTS.items():
        if doubtful := [row for row in rows if row.doubt == doubt]:
            who = texts.some([row.who.id for row in doubtful], 6)
            what = words.format(number=_number(len(doubtful)), who=who, column=times_of(lab)[1])
            yield f"{what}, then {ours('grade', lab)}"
    if result.refused:
        who = texts.some([texts.clean(name, 40) for name in result.refused], 6)
        number = len(result.refused)
        lasting = [each for each in result.refused.values() if each.unmatched]  # which every run names
        yield (
            f"{number} {'file was' if number == 1 else 'files were'} refused ({who}): "
            f"do what the line above says, then {ours('grade', lab, 'FOLDER')} again"
            + f"; or delete the row in {course.grades.name} if nobody is to be graded for it"
            * bool(lasting)
        )


def _number(hand_ins: int) -> str:
    return "1 hand-in" if hand_ins == 1 else f"{hand_ins} hand-ins"


def _requests(course: Course) -> Iterator[str]:
    """Requests for a regrade that nobody has looked at: beside an answered one its record lies."""
    if not course.regrades.is_dir():
        return
    found, problems = regrades.requests(course, course.regrades)
    open_ = [request.path.name for request in found if not regrades.record_of(course, request).exists()]
    if open_:
        which = texts.some([texts.clean(name, 60) for name in open_], 3)
        yield f"{texts.number(open_, 'request', 'requests')} for a regrade ({which}): {ours('regrades')}"
    if problems:
        which = texts.some([texts.clean(path.name, 60) for path in problems], 3)
        words = texts.number(problems, "file is no request", "files are no requests")
        it = "it" if len(problems) == 1 else "them"
        yield (
            f"{words} that can be read ({which}): correct or delete {it} in {course.regrades}; "
            f"{ours('regrades')} says what is wrong"
        )


def _handing_out(
    course: Course, lab: str, rows: Sequence[Final], exported: Collection[str], packed: Collection[str]
) -> Iterator[str]:
    handed_in = [row for row in rows if row.state != final.MISSING]
    unfinished = sum(not row.is_final for row in handed_in)
    ways = [f"--export {layout}" for layout in dict.fromkeys(exported)]
    ways += [f"--feedback {way}" for way in dict.fromkeys(packed)]
    lms = next((name for row in rows if (name := _lms(row.sent_as))), "canvas")
    command = ours("grade", lab, *(ways or [f"--export {lms} --feedback {lms}"]))
    if unfinished:
        words = "1 grade is" if unfinished == 1 else f"{unfinished} grades are"
        yield f"{words} not final; afterwards: {command}"
    elif ways or not handed_in:
        return
    elif new := exports.changed(course, lab, rows):
        yield f"{_grades(len(new))} not as exported ({texts.some(new, 6)}); to hand them out: {command}"
    elif not exports.written(course, lab):
        yield f"all grades are final; to hand them out: {command}"


def _lms(sent_as: str) -> str:
    return "moodle" if MOODLE.fullmatch(sent_as) else "canvas" if CANVAS.fullmatch(sent_as) else ""


def _open(course: Course, lab: str, rows: Sequence[Final], unmatched: Collection[str]) -> str:
    """What is open in another lab, in a few words; empty where nothing is."""
    number = sum(row.state not in (final.FINAL, final.MISSING) for row in rows)
    words = [f"{_grades(number)} not final"] * bool(number)
    if new := exports.changed(course, lab, rows):
        words.append(f"{_grades(len(new))} not as exported: {texts.some(new, 3)}")
    if unmatched:
        words.append(f"nobody's file: {texts.some([texts.clean(name, 40) for name in unmatched], 3)}")
    return "; ".join(words)


def _grades(number: int) -> str:
    return "1 grade" if number == 1 else f"{number} grades"
