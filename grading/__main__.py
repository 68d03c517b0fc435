"""`python -m grading release | course | grade | similar | regrades | errors | gradescope | forget | …`"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from grading.core.commands import Parser, guess, ours
from grading.core.course import GRADEBOOK, Course
from grading.core.errors import GradingError
from grading.core.texts import AGAIN, STOPPED_BY_HAND, clean, some

if TYPE_CHECKING:
    from grading.gpu_stage.devices import Timer
    from grading.lms.classroom import ClassResult

OPTIONAL = ("process limit",)  # grading goes on without it
console = Console(highlight=False, soft_wrap=True)


def release(options: argparse.Namespace, course: Course) -> int:
    """Release the named lab, or all; with --check only say what is out of date."""
    from grading.authoring import release as release_module

    stale = 0
    labs = [options.lab] if options.lab else course.lab_names()
    wide = max(map(len, labs), default=0)
    for lab in labs:
        if options.check:
            lines = release_module.differences(course, lab)
            stale += bool(lines)
            state = f"out of date, run: {ours('release', lab)}" if lines else "in sync"
            for line in lines:
                console.print(line, markup=False)
        else:
            state = "released" if release_module.release(course, lab) else "already up to date"
        console.print(f"{lab:<{wide}} {state}", markup=False)
        if options.prove:
            stale += not _show_proofs(course, lab)
    if not options.lab:
        stale += _release_pages(course, options.check, wide)
    return 1 if stale else 0


def draw(options: argparse.Namespace, course: Course) -> int:
    """Write the drawings of the labs' texts from their data."""
    from grading.authoring import drawings

    for path in drawings.draw(course):
        console.print(str(path.relative_to(course.solutions)), markup=False)
    return 0


def answers(options: argparse.Namespace, course: Course) -> int:
    """Write the model answers of all written questions into one file."""
    from grading.authoring import answers as model_answers

    count = model_answers.write(course, options.file)
    console.print(f"{options.file}: {count} answers, for people who are not graded", markup=False)
    return 0


def _release_pages(course: Course, check: bool, wide: int) -> bool:
    """The notebooks beside the labs; says whether any is stale."""
    from grading.authoring import release as release_module

    if not check:
        state = "released" if release_module.release_pages(course) else "already up to date"
        console.print(f"{'index':<{wide}} {state}", markup=False)
        return False
    lines = release_module.page_differences(course)
    for line in lines:
        console.print(line, markup=False)
    state = f"out of date, run: {ours('release')}" if lines else "in sync"
    console.print(f"{'index':<{wide}} {state}", markup=False)
    return bool(lines)


def _show_proofs(course: Course, lab: str) -> bool:
    from grading.authoring.prove import prove

    proofs = prove(course, lab)
    for proof in proofs:
        points = f"{proof.verdict.points:g}/{proof.verdict.of:g}"
        state = f"✘ {proof.problem}" if proof.problem else f"✔ {clean(proof.verdict.reason, 90)}".rstrip()
        console.print(f"  {proof.exercise:<22} {proof.variant:<34} {points:>7}  {state}", markup=False)
    bad = sum(bool(proof.problem) for proof in proofs)
    console.print(f"  {len(proofs) - bad} of {len(proofs)} proofs hold")
    return not bad


def own_course(options: argparse.Namespace, course: Course) -> int:
    """Make a repository for learners, or bring it up to date."""
    from grading.authoring import own_course as own_course_module
    from grading.authoring import schedule

    labs = schedule.named(course, options.labs) if options.labs is not None else ()
    made = own_course_module.make(
        course, options.folder, options.name, options.repository, labs, classroom=options.classroom
    )
    console.print(
        f"{made.folder}: {made.labs} lab{'s' * (made.labs != 1)} for {clean(made.cohort.name)}", markup=False
    )
    changes = f"{made.written} files written" if made.written else "already up to date"
    removed = f", {made.removed} taken away" if made.removed else ""
    console.print(f"{changes}{removed} · {made.git}", markup=False)
    where = made.address.repository or "nowhere, so no notebook has links to Colab, Kaggle or Binder"
    console.print(f"public address: {where}", markup=False)
    for note in made.notes:
        console.print(f"note: {note}", markup=False)
    console.print("no solutions, wrong submissions, judge's cases or history are in it", markup=False)
    return 0


def grade(options: argparse.Namespace, course: Course) -> int:
    """Grade a folder or zip of submissions into the gradebook."""
    from grading.core.sandbox import Limits
    from grading.lms import classroom, exports, screen, todo

    began = time.monotonic()
    limits = Limits.of(options.limit)
    if options.title:
        exports.title_of(course, options.lab, options.title)  # kept for the run that exports
    devices: Sequence[Timer] = ()
    if options.gpu:
        from grading.gpu_stage.devices import gpus

        devices = gpus()
    with screen.progress_bar(console) as bar:
        result = classroom.grade(
            course,
            options.lab,
            options.folder or course.submitted,
            limits=limits,
            unsafe=options.unsafe,
            workers=options.workers,
            roster=options.roster,
            scheduler=options.scheduler,
            gpus=devices,
            keep=options.keep,
            tell=bar,
        )
    result.seconds = time.monotonic() - began
    screen.show(console, result)
    layouts, ways = dict.fromkeys(options.export), dict.fromkeys(options.feedback)
    if options.provisional and not layouts and not ways:
        console.print("note: --provisional changes nothing without --export or --feedback", markup=False)
    failed = sum(not _written(partial(_exported, options, course, result, layout)) for layout in layouts)
    failed += sum(not _written(partial(_packed, options, course, result, way)) for way in ways)
    console.print(
        f"wrote {course.grades} · {course.class_page} · feedback in {course.feedback}", markup=False
    )
    for line in todo.left(course, result, options.export, options.feedback):
        console.print(line, markup=False)
    return 1 if failed else 0


def _written(write: Callable[[], tuple[Path | None, list[str]]]) -> bool:
    """Write one file for an LMS and say what is not in it. One that cannot be written keeps no other back."""
    try:
        path, told = write()
    except GradingError as error:
        console.print(f"{error}", style="red", markup=False)
        return False
    if path:
        console.print(f"wrote {path}", markup=False)
    for line in told:
        console.print(f"    {line}", markup=False)
    return True


def _exported(
    options: argparse.Namespace, course: Course, result: ClassResult, layout: str
) -> tuple[Path, list[str]]:
    from grading.lms import exports, roster

    path = exports.write(course, options.lab, layout, result.table, options.title, options.provisional)
    told = exports.left_out(layout, result.table, options.provisional)
    if layout == "canvas":
        titles = roster.of_lab(course, options.lab).titles
        told += exports.unknown_title(exports.title_of(course, options.lab), titles)
    return path, told


def _packed(
    options: argparse.Namespace, course: Course, result: ClassResult, way: str
) -> tuple[Path | None, list[str]]:
    from grading.lms import handback

    return handback.write(course, result.lab, way, result.table, options.provisional)


def similar(options: argparse.Namespace, course: Course) -> int:
    """Name groups of submissions that have much in common, or show two side by side."""
    from grading.lms import classroom, similar_page, similar_ptx
    from grading.lms import similar as similar_module

    if options.html and options.pair:
        raise GradingError(
            "--html makes a page of all groups, --pair shows two students: leave one of them out"
        )
    if options.html and (options.html.is_dir() or not options.html.parent.is_dir()):
        raise GradingError(f"--html {options.html}: give the name of a file in a folder that exists")
    lab = classroom.open_lab(course, options.lab)
    grafts, unread = classroom.grafts(course, lab, options.folder or course.submitted)
    for line in unread:
        console.print(f"not compared: {clean(line, 200)}", markup=False)
    if not any(grafts.values()):
        where = options.folder or course.submitted
        raise GradingError(f"no notebook of {options.lab} in {where} can be read: nothing is compared")
    known = {student for notebooks in grafts.values() for student in notebooks} | {similar_module.SOLUTION}
    if missing := [student for student in options.pair or () if student not in known]:
        named = " and ".join(f"{clean(student)}{guess(student, known)}" for student in missing)
        raise GradingError(f"no notebook of {named} to compare; there are: {some(sorted(known))}")
    shown = {}
    for name, notebooks in grafts.items():
        given = similar_module.given(course, options.lab, name, lab.notebooks[name])
        answers = {student: similar_module.answers(notebook) for student, notebook in notebooks.items()}
        if given.solution:
            answers[similar_module.SOLUTION] = similar_module.answers(given.solution)
        if options.pair:
            first, second = (answers.get(student, {}) for student in options.pair)
            for cell in {**first, **second}:
                console.print(f"{cell}", style="bold", markup=False)
                one, two = first.get(cell, ""), second.get(cell, "")
                for line in similar_page.side_by_side(one, two, given.known):
                    console.print(line, markup=False)
            continue
        if options.ptx:
            found = similar_ptx.compared(given, lab.questions[name], notebooks, options.unsafe)
        else:
            found = similar_module.compared(given, notebooks)
        shown[name] = (found[: options.top], answers, given.known)
        similar_page.show(console, name, found[: options.top], len(notebooks))
    if options.html:
        options.html.write_text(similar_page.page(options.lab, shown), encoding="utf-8")
        console.print(f"wrote {options.html}", markup=False)
    return 0


def regrades(options: argparse.Namespace, course: Course) -> int:
    """Judge anew what students asked for, and show both verdicts; nothing is written into the gradebook.

    A file that is no request is named and keeps no other from its answer.
    """
    from grading.core.sandbox import Limits
    from grading.lms import regrades as regrades_module

    limits = Limits.of(options.limit)
    folder = options.folder or course.regrades
    found, problems = regrades_module.queue(course, folder, limits, options.unsafe)
    for each in found:
        for line in each.lines():
            console.print(line, markup=False)
    changed = sorted({each.request.lab for each in found if each.changes})
    for problem in problems:
        console.print(f"not judged: {clean(problem, 400)}", markup=False)
    nothing = "" if found or problems else f" in {folder}: put the students' requests there, a .toml each"
    console.print(f"{len(found)} request{'s' * (len(found) != 1)}{nothing}", markup=False)
    for lab in changed:
        console.print(
            f"the judge says something else today: {ours('grade', lab)} gives it to everybody", markup=False
        )
    return 1 if problems else 0


def errors(options: argparse.Namespace, course: Course) -> int:
    """Say what goes wrong in a lab's exercises: known from wrong/, and in the class."""
    from grading.authoring import typical

    text = typical.markdown(options.lab, typical.typical(course, options.lab))
    console.print(text, markup=False)
    return 0


def forget(options: argparse.Namespace, course: Course) -> int:
    """Delete student data of before a date, or of one student; without --yes only say what that would be."""
    from grading.lms import classroom, retention, settings

    before, keep, student = options.before, settings.read(course).keep, options.student
    if before is None and keep is None and not student:
        raise GradingError(
            "before which date? Add --before 2027-10-01, or a table [retention] with days = 400 "
            f"to {course.settings}, or name one student"
        )
    if before is None and student:
        before = datetime.max
    elif before is None and keep is not None:
        before = datetime.now(UTC).replace(tzinfo=None) - keep
    with classroom.alone(course):
        books = retention.gradebooks(course, options.gradebooks)
        gone = retention.past(course, before, books, student)
        for each in gone:
            when = f"{each.since:%Y-%m-%d}"
            console.print(f"{when}  {clean(each.lab, 60):<28} {clean(each.student, 64)}", markup=False)
        for line in retention.with_others(course, gone) if student else ():
            console.print(clean(line, 300), markup=False)
        what = "data of 1 submission" if len(gone) == 1 else f"data of {len(gone)} submissions"
        what += f" of {student}" * bool(student)
        what += f" from before {before:%Y-%m-%d}" * (before != datetime.max)
        if not options.yes:
            console.print(f"{what} would go for good; with --yes it does", markup=False)
            return 0
        retention.forget(course, gone, books)
        left = retention.left(course, before, books)
    console.print(f"deleted: {what}", markup=False)
    for path in left:
        console.print(f"still here, because nobody knows whose it is: {clean(path, 300)}", markup=False)
    for path in retention.named(course, student) if student else ():
        console.print(f"{clean(path, 300)} still names {student}: delete that by hand", markup=False)
    return 0


def gradescope(options: argparse.Namespace, course: Course) -> int:
    """Write an autograder that Gradescope takes."""
    from grading.authoring import gradescope as gradescope_module

    path = gradescope_module.pack(course, options.lab, options.file)
    size = path.stat().st_size / 1e6
    console.print(
        f"wrote {path} ({size:.1f} MB): it holds the expected results, so keep it to yourself", markup=False
    )
    return 0


def redteam(options: argparse.Namespace, course: Course) -> int:
    """Attack this installation: does everybody get what they deserve? Attacks do, and odd honest answers."""
    from grading.redteam import plays

    chosen = plays.of_lab(options.lab)
    failed = 0
    for play, problem in plays.results(course, chosen):
        failed += bool(problem)
        words = clean(problem, 200) if problem else f"{play.earns:g} points, as it deserves"
        console.print(f"{'✘' if problem else '✔'} {clean(play.how, 90)}: {words}", markup=False)
    console.print(f"{len(chosen) - failed} of {len(chosen)} ended as they should", markup=False)
    return 1 if failed else 0


def doctor(options: argparse.Namespace, course: Course) -> int:
    """Say whether this machine can grade."""
    from grading.lms.doctor import checks

    well = True
    for what, good, words in checks(course):
        console.print(f"{what:<14} {'ok' if good else 'no':<4} {words}", markup=False)
        well &= good or what in OPTIONAL
    return 0 if well else 1


def positive(text: str) -> float:
    """A number above 0, for argparse."""
    with suppress(ValueError):
        if 0 < (number := float(text)) < float("inf"):
            return number
    raise argparse.ArgumentTypeError(f"{text} is not a number above 0")


def count(text: str) -> int:
    """A whole number above 0, for argparse."""
    with suppress(ValueError):
        if (number := int(text)) >= 1:
            return number
    raise argparse.ArgumentTypeError(f"{text} is not a whole number above 0")


def day(text: str) -> datetime:
    """The beginning of a day in UTC, for argparse."""
    try:
        return datetime.combine(date.fromisoformat(text), datetime.min.time())
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is no date such as 2027-10-01") from None


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = Parser(prog=ours(), description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    command = commands.add_parser("release", help="solutions/ → labs/, and the proofs of each exercise")
    command.add_argument("lab", nargs="?", help="one lab, such as 04_memory_hierarchy or 04 (default: all)")
    command.add_argument("--check", action="store_true", help="change nothing; exit 1 where labs/ is stale")
    command.add_argument(
        "--prove", action="store_true", help="judge stubs, solutions and wrong/*: all as they should?"
    )
    command.set_defaults(run=release)
    command = commands.add_parser("answers", help="model answers, for people who study alone")
    command.add_argument("file", type=Path, metavar="FILE", help="such as model_answers.json")
    command.set_defaults(run=answers)
    command = commands.add_parser("draw", help="the drawings of the labs' texts → solutions/*/drawings")
    command.set_defaults(run=draw)
    command = commands.add_parser(
        "course", help="a repository for learners, with sizes and contents of its own"
    )
    command.add_argument(
        "folder", type=Path, metavar="DIR", help="a new folder, or one that this made before"
    )
    command.add_argument(
        "--name", default="", help="of the class: it decides sizes and contents (default: the folder's name)"
    )
    command.add_argument(
        "--repository", metavar="URL", help="its public address, https://github.com/OWNER/NAME, for links "
        "that open notebooks on Colab, Kaggle and Binder; '' for none (default: as it was)",
    )  # fmt: skip
    command.add_argument(
        "--labs", metavar="03,04", help="add these, whatever the dates are; those that the folder has stay "
        "(default: those that [release] in course.toml has released by now; without dates, all)",
    )  # fmt: skip
    command.add_argument(
        "--classroom", action="store_true", help="with an Action that checks each push and reports points "
        "to GitHub Classroom",
    )  # fmt: skip
    command.set_defaults(run=own_course)
    command = commands.add_parser(
        "grade", help="a folder or zip of submissions → verdicts, gradebook, feedback, grades.csv"
    )
    command.add_argument("lab", help="the lab, such as 04_memory_hierarchy or 04")
    command.add_argument(
        "folder", nargs="?", type=Path, help="what Canvas or Moodle made of \"download all submissions\", or "
        "STUDENT/LAB/NAME.ipynb, STUDENT/NAME.ipynb or STUDENT.ipynb, in a folder or a zip "
        "(default: grading/submitted)",
    )  # fmt: skip
    command.add_argument(
        "--roster", type=Path, metavar="CSV", help="the class: columns id, canvas, moodle, name; or Canvas's "
        "export of its gradebook; or Moodle's grading worksheet (default: grading/roster.csv, where it is)",
    )  # fmt: skip
    command.add_argument(
        "--export", action="append", default=[], choices=("canvas", "moodle"),
        help="also write the grades in the columns that Canvas or Moodle reads; may be given twice",
    )  # fmt: skip
    command.add_argument(
        "--feedback", action="append", default=[], choices=("moodle", "canvas", "mail"),
        help="also pack the feedback: a zip that Moodle or Canvas takes, or a letter for each student; "
        "may be given several times",
    )  # fmt: skip
    command.add_argument(
        "--provisional", action="store_true", help="export grades that are not final, too, and pack their "
        "feedback (default: leave them empty, so that the LMS keeps what it has)",
    )  # fmt: skip
    command.add_argument(
        "--keep", action="append", default=[], metavar="STUDENT", help="the earlier file of this student "
        "counts, although a newer one cannot be read; may be given several times",
    )  # fmt: skip
    command.add_argument(
        "--title",
        default="",
        help="what Canvas calls the assignment (default: as in an earlier run, or the lab's name)",
    )
    command.add_argument(
        "--gradebook", metavar="URL", default="", help="such as postgresql://user:password@host/database "
        f"(default: grading/gradebook.db, or what {GRADEBOOK} says)",
    )  # fmt: skip
    command.add_argument(
        "--limit", type=positive, default=120, metavar="SECONDS", help="for one submission: so long may its "
        "code run, and so much processor time may its replay take (default: 120)",
    )  # fmt: skip
    command.add_argument(
        "--workers", type=count, default=0, metavar="N", help="at once (default: one per core)"
    )
    command.add_argument(
        "--scheduler", metavar="ADDRESS", default="", help="judge on the workers of this Dask scheduler, "
        "such as tcp://10.0.0.1:8786 (default: on this machine)",
    )  # fmt: skip
    command.add_argument(
        "--gpu", action="store_true", help="then time what passed on the NVIDIA GPUs of this machine"
    )
    command.add_argument(
        "--unsafe", action="store_true", help="without a sandbox: only for submissions that you trust"
    )
    command.set_defaults(run=grade)
    command = commands.add_parser("similar", help="groups of submissions that a person should look at")
    command.add_argument("lab", help="the lab, such as 04_memory_hierarchy or 04")
    command.add_argument("folder", nargs="?", type=Path, help="as for grade (default: grading/submitted)")
    command.add_argument("--top", type=count, default=20, metavar="N", help="how many groups (default: 20)")
    command.add_argument(
        "--pair",
        nargs=2,
        metavar=("A", "B"),
        help="show these two students' answers side by side; solutions/ is the lab's own",
    )
    command.add_argument(
        "--html", type=Path, metavar="FILE", help="also make a page of them, with their answers side by side"
    )
    command.add_argument(
        "--ptx", action="store_true", help="compare what the compiler made of kernels, not the text"
    )
    command.add_argument("--unsafe", action="store_true", help="with --ptx: as for grade")
    command.set_defaults(run=similar)
    command = commands.add_parser("regrades", help="students' requests: the old verdict beside a new one")
    command.add_argument(
        "folder", nargs="?", type=Path, help="with a .toml for each request (default: grading/regrades)"
    )
    command.add_argument(
        "--limit", type=positive, default=120, metavar="SECONDS", help="as for grade (default: 120)"
    )
    command.add_argument("--unsafe", action="store_true", help="as for grade")
    command.set_defaults(run=regrades)
    command = commands.add_parser(
        "errors", help="typical errors of each exercise: of wrong/ and of the class"
    )
    command.add_argument("lab", help="the lab, such as 04_memory_hierarchy or 04")
    command.set_defaults(run=errors)
    command = commands.add_parser("gradescope", help="an autograder for Gradescope, as a zip")
    command.add_argument("lab", help="the lab, such as 04_memory_hierarchy or 04")
    command.add_argument("file", type=Path, metavar="FILE.zip", help="where to write it")
    command.set_defaults(run=gradescope)
    command = commands.add_parser("forget", help="delete student data of before a date, or of one student")
    command.add_argument("student", nargs="?", default="", help="an id: only what belongs to this student")
    command.add_argument(
        "--before",
        type=day,
        metavar="DATE",
        help="such as 2027-10-01 (default: as long ago as course.toml says)",
    )
    command.add_argument(
        "--gradebook", dest="gradebooks", action="append", default=[], metavar="URL",
        help="as for grade, if the class was graded into a database; may be given twice",
    )  # fmt: skip
    command.add_argument("--yes", action="store_true", help="do it: without this, only say what would go")
    command.set_defaults(run=forget)
    command = commands.add_parser("redteam", help="attack this installation and see what gets through")
    command.add_argument("lab", nargs="?", default="", help="one lab, such as 04 (default: all; minutes)")
    command.set_defaults(run=redteam)
    command = commands.add_parser("doctor", help="can this machine grade?")
    command.set_defaults(run=doctor)
    return top


def main(arguments: Sequence[str] | None = None, course: Course | None = None) -> int:
    """Run one command; every foreseen failure is one message and exit status 1."""
    options = parser().parse_args(arguments)
    try:
        course = course or Course()
        if getattr(options, "gradebook", ""):
            course = replace(course, database=options.gradebook)
        if getattr(options, "lab", None):
            options.lab = course.whole_name(options.lab)
        return int(options.run(options, course))
    except GradingError as error:
        console.print(f"{error}", style="red", markup=False)
        return 1
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        again = AGAIN if options.command == "grade" else "Fix this and run the same command again"
        console.print(f"{error.strerror}{where}. {again}", style="red", markup=False)
        return 1
    except KeyboardInterrupt:
        console.print(STOPPED_BY_HAND, markup=False)
        return 130


if __name__ == "__main__":
    sys.exit(main())
