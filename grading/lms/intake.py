"""What a class hands in, on its way into the course's folders: copied, timed, each file accounted for."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from grading.core import texts
from grading.core.commands import closest, ours
from grading.core.course import Course
from grading.core.errors import GradingError
from grading.core.tasks import Lab
from grading.core.verdicts import Store
from grading.lms import gradebook, late, newer, settings
from grading.lms.roster import Roster, Student, read_roster, remembered, times_of
from grading.lms.submissions import (
    Submission,
    by_canvas,
    called_late,
    find_submissions,
    lab_of,
    marks_of,
    remember_sender,
)

MANY, MOST = 2, 10  # hand-ins of another lab that are no accident, and so many for each of the right lab


def collect(
    course: Course, lab: Lab, folder: Path, roster: Roster, called: Path | None = None
) -> tuple[list[Submission], list[str]]:
    """The submissions of a folder, copied to where nbgrader looks for them, and what a person should know.

    A notebook that a student handed in before, and not again, is part of the submission, and so is one that
    can be read where the newer one cannot. Hand-ins that the gradebook has lost, or never had, are found
    again. Raises GradingError where there is nothing.
    """
    labs = {*course.lab_names(), *(p.name for p in course.labs.glob("[0-9]*"))} - {lab.name}
    names, known = list(lab.notebooks), settings.read(course)
    released = {place.name for place in (course.labs / lab.name).iterdir() if place.is_dir()}
    found: list[Submission] = []
    again: list[str] = []
    untimed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="gpulab-zips-") as scratch:
        delivered = find_submissions(
            folder, lab.name, names, roster, called,
            scratch=Path(scratch), other_labs=labs, released=released, marks=lab.marks,
        )  # fmt: skip
        _check_lab(course, lab, delivered, called or folder)
        before = {s.student for s in delivered if (course.submitted / s.student / lab.name).is_dir()}
        same = _copies(known.groups_of(lab.name), delivered, before)
        for submission in delivered:
            if submission.student in same:  # what the LMS called it leads feedback to this member, too
                remember_sender(course, lab.name, submission)
                continue
            place = course.submitted / submission.student / lab.name
            if submission.refused:
                found.append(submission)
                continue
            submission = _without_unreadable(course, lab, submission, place)
            replaced = submission.folder != place and _copy(submission, place)
            timed = _time(submission, place, known, submission.student in newer.noted(course, lab.name))
            remember_sender(course, lab.name, submission)
            if replaced:
                (again if timed or not (place / late.STAMP).exists() else untimed).append(submission.student)
            odd = {name: path for name, path in submission.notebooks.items() if not _regular(path)}
            here = {name: path for name in names if (path := place / f"{name}.ipynb").is_file()}
            late_there = submission.late or called_late(course, lab.name, submission.student)
            found.append(replace(submission, notebooks={**here, **odd}, late=late_there))
    told = [*_before(course, lab, found, roster, known)]
    old_time = ". No time is known of the new file, so that of the earlier one counts"
    told += [
        f"a file took the place of an earlier one, which counts again if you grade it alone: "
        f"{texts.some(who)}{words}"
        for who, words in ((again, ""), (untimed, old_time))
        if who
    ]
    return found, [
        *told,
        *roster.notes,
        *_misnamed(found),
        *_doubts_of_time(course, lab.name, found, roster),
        *_left_over(found),
    ]


def _check_lab(course: Course, lab: Lab, delivered: Sequence[Submission], called: Path) -> None:
    """Raises GradingError for the folder of another lab, before anything is written into this one's grades.

    That is a folder with two hand-ins of another lab or more, and ten for each of this one: somebody may have
    mistaken the labs.
    """
    labs: dict[str, dict[str, Collection[str]]] = {lab.name: dict(lab.marks)}
    right = sum(bool(lab_of(each, labs)) for each in delivered)
    if called == course.submitted or len(delivered) < max(MANY, MOST * right):
        return
    for path in course.labs.glob("[0-9]*/*.ipynb"):
        labs.setdefault(path.parent.name, {}).setdefault(path.stem, marks_of(path))
    counts = Counter(name for each in delivered if (name := lab_of(each, labs)))
    (other, number), *_ = counts.most_common(1) or [("", 0)]
    if other != lab.name and number >= max(MANY, MOST * counts[lab.name]):
        there = counts[lab.name] or "nothing"
        raise GradingError(
            f"{called} holds {number} hand-ins of {other}, and of {lab.name} {there}. Nothing was changed. "
            f"If you meant {other}: {ours('grade', other, shlex.quote(str(called)))}"
        )


def _without_unreadable(course: Course, lab: Lab, submission: Submission, place: Path) -> Submission:
    """The submission without files that cannot be read where an earlier one can, which are noted.

    Where nothing of the lab, or nothing else, was handed in, what an LMS called it and its time are not taken
    over, either: they say nothing of the file that counts.
    """
    if submission.folder == place:
        return submission
    good = dict(submission.notebooks)
    for name, path in submission.notebooks.items():
        earlier = place / f"{name}.ipynb"
        why = "" if not _regular(earlier) or _same(path, earlier) else newer.trouble(lab, name, path)
        if not why:
            newer.drop(course, lab.name, submission.student, name)
        elif not newer.trouble(lab, name, earlier):
            newer.set_aside(course, lab.name, submission.student, name, path, why)
            del good[name]
    if not good and any((place / f"{name}.ipynb").is_file() for name in lab.notebooks):
        unsent = replace(submission.who, handed_in="")
        return replace(submission, notebooks={}, folder=place, sent_as="", late=False, who=unsent)
    return replace(submission, notebooks=good)


def _before(
    course: Course, lab: Lab, found: list[Submission], roster: Roster, known: settings.Settings
) -> Iterator[str]:
    """What earlier runs took in and this one was not given: hand-ins that are not in the gradebook are added
    to `found`, and times that the roster has by now are taken over."""
    given = {each.student for each in found}
    students = {path.parent.name: path for path in course.submitted.glob(f"*/{lab.name}") if path.is_dir()}
    fixed = newer.noted(course, lab.name)
    for who in roster.students.keys() & students.keys() - given:
        _time(Submission(who, {}, students[who], roster.students[who]), students[who], known, who in fixed)
    store = Store(course.verdicts)
    judged = {path.name.rpartition("@")[0] for path in (course.verdicts / lab.name).glob("*@*.json")}
    lost = sorted({*students, *judged} - given - gradebook.students(course, lab.name))
    for who in lost if roster.path is None else [who for who in lost if who in roster.students]:
        place = course.submitted / who / lab.name
        here = {name: path for name in lab.notebooks if (path := place / f"{name}.ipynb").is_file()}
        verdicts = [store.get(who, lab.name, name) for name in lab.notebooks]
        if here or any(verdict and verdict.ungraded for verdict in verdicts):
            called = called_late(course, lab.name, who)
            whose = roster.students.get(who, Student(who))
            found.append(Submission(who, here, place, whose, late=called))
    if back := [each.student for each in found if each.student not in given]:
        yield (
            f"the gradebook had nothing of {texts.some(back)}, who handed in before this run, so they were "
            f"graded as well, from {course.submitted}. If a person gave them points, those are in the "
            "gradebook that you had before"
        )


def _misnamed(submissions: Sequence[Submission]) -> Iterator[str]:
    if odd := [f"{s.student} ({', '.join(s.misnamed)})" for s in submissions if s.misnamed]:
        yield f"graded by its cells, and not by its name: {texts.some(odd)}"


def _copies(groups: Sequence[settings.Group], found: Sequence[Submission], before: set[str]) -> set[str]:
    """Members of groups whose files are those of another member, as Moodle sends them.

    Who handed in `before` is never one of them: the gradebook has that hand-in already.
    """
    by_id = {each.student: each for each in found if not each.refused and each.notebooks}
    same = set()
    for group in groups:
        seen: set[object] = set()
        for member in sorted(group.members, key=lambda who: (who not in before, who)):
            if member in by_id and all(map(_regular, (paths := by_id[member].notebooks).values())):
                content = tuple((name, paths[name].read_bytes()) for name in sorted(paths))
                if content in seen and member not in before:
                    same.add(member)
                seen.add(content)
    return same


def _regular(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _same(one: Path, other: Path) -> bool:
    return _regular(one) and one.read_bytes() == other.read_bytes()


def _copy(submission: Submission, place: Path) -> bool:
    """Copy what was handed in; says whether it is in the place of something else."""
    replaced = False
    for name, path in submission.notebooks.items():
        target = place / f"{name}.ipynb"
        if _regular(path) and not (target.exists() and _same(path, target)):
            if target.exists():
                replaced = True
                if submission.late:  # what is known of the earlier file's time says nothing of this one
                    (place / late.STAMP).unlink(missing_ok=True)
            place.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    return replaced


def _time(submission: Submission, place: Path, known: settings.Settings, fixed: bool = False) -> bool:
    """Note when it was handed in, as a stamp beside it or the roster says; says whether one does.

    For a hand-in of an earlier run, the roster's time replaces the one noted then: somebody corrected it. Not
    that of one that is `fixed`, because an LMS's roster has the time of a newer file, which does not count.
    """
    source, stamp = submission.folder / late.STAMP, place / late.STAMP
    if not place.is_dir():
        if not submission.others or late.moment(submission.who.handed_in, known.zone) is None:
            return False
        place.mkdir(parents=True)  # it held no notebook, and a person may give it points
        late.write_stamp(stamp, submission.who.handed_in, known.zone)
    if source == stamp:
        if fixed and stamp.exists():
            return True
        late.write_stamp(stamp, submission.who.handed_in, known.zone)
        return stamp.exists()
    if _regular(source) and submission.notebooks:
        shutil.copyfile(source, stamp)
        return True
    if submission.notebooks:
        late.write_stamp(stamp, submission.who.handed_in, known.zone)
    return late.moment(submission.who.handed_in, known.zone) is not None


def _doubts_of_time(
    course: Course, lab: str, submissions: Sequence[Submission], roster: Roster
) -> Iterator[str]:
    """Why somebody may be late, or have more time, without anything coming of it."""
    known = settings.read(course)
    if known.late is None:
        return
    if lab not in known.due:
        yield f"{course.settings.name} has a rule for late submissions, but no due date for {lab} in [due]"
        return
    waived = known.waived.get(lab, {})  # whom no time costs anything
    here = {s.student: s for s in submissions if not s.refused and s.student not in waived}
    timed = {who for who in here if (course.submitted / who / lab / late.STAMP).is_file()}
    unread = {who: each.who.handed_in for who, each in here.items() if _unreadable(each, known)}
    named = [who for who, each in here.items() if each.late and who not in timed and who not in unread]
    if named:
        yield (
            "Canvas marks these as LATE, but not since when, so their grades are not final: "
            f"{texts.some(named)}. Write the times into a column {times_of(lab)[1]} of the roster, or what "
            f"shall not be taken off into [waive.{lab}] of {course.settings.name}"
        )
    unknown = [who for who in here if who not in timed and who not in named and here[who].notebooks]
    unknown = [
        who for who in unknown if who not in unread and not _by_canvas(course, lab, here[who])
    ]  # which says who is late
    if unknown:
        yield (
            f"no time of handing in is known of {texts.some(unknown)}, so they count as on time. "
            f"Write the times into a column {times_of(lab)[1]} of the roster"
        )
    if unread:
        odd = texts.some([f"{who} '{said}'" for who, said in unread.items()])
        yield (
            f"these times of handing in cannot be read, so the grades are not final: {odd}. "
            "Write them as 2027-01-17 22:10"
        )
    everybody = {*roster.students, *(s.student for s in submissions if not s.refused), *_elsewhere(course)}
    tables: dict[str, Collection[str]] = {
        "extension": [who for who, each in known.extensions.items() if any(e.of(lab) for e in each)],
        f"extra.{lab}": known.extra.get(lab, {}),
        f"waive.{lab}": known.waived.get(lab, {}),
    }
    for table, ids in tables.items():
        if strangers := [
            who for who in ids if who not in everybody and not (course.submitted / who).is_dir()
        ]:
            named = [_with_a_guess(who, everybody) for who in strangers]
            yield (
                f"nobody has this id, so nobody gets what [{table}] gives it: {texts.some(named)}. "
                f"Correct it in {course.settings.name}"
            )


def _by_canvas(course: Course, lab: str, submission: Submission) -> bool:
    """Whether Canvas sent the file that counts. A newer one may come by mail, in a folder of one's own."""
    given = submission.folder != course.submitted / submission.student / lab
    return by_canvas(course, lab, submission.student) and not (given and not submission.sent_as)


def _elsewhere(course: Course) -> Iterator[str]:
    """The students on the rosters of other labs, as far as those can be read."""
    for path in {course.roster, *map(Path, remembered(course.rosters).values())}:
        with suppress(GradingError):
            yield from read_roster(path).students


def _with_a_guess(who: str, everybody: Collection[str]) -> str:
    """``adda (ada?)``: an id that nobody has, and the one that may be meant."""
    longer = [each for each in everybody if each.startswith(f"{who}@")]  # an address without its host
    near = longer[0] if longer else closest(who, everybody)
    return f"{who} ({near}?)" if near else who


def _unreadable(submission: Submission, known: settings.Settings) -> bool:
    said = submission.who.handed_in.strip()
    return said not in ("", "-") and late.moment(said, known.zone) is None


def _left_over(submissions: Sequence[Submission]) -> list[str]:
    """Files that are no notebook of the lab, in one line; a student's who has none, the verdict names."""
    odd = [f"{s.student} {', '.join(s.others)}" for s in submissions if s.others and s.notebooks]
    return [f"not looked at beside a notebook of this lab: {texts.some(odd)}"] if odd else []
