"""Grading a class: find, graft, judge in parallel, store; then one writer for the gradebook.

A submission that cannot be judged gets its reason and never stops another one.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import shlex
import signal
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from nbformat import NotebookNode

from grading.core import environment, sandbox, texts
from grading.core.commands import guess
from grading.core.course import Course
from grading.core.errors import GradingError, NotebookError, ReleaseError, SandboxError
from grading.core.graft import Graft, graft
from grading.core.judge import Judge
from grading.core.notebooks import Question, is_solution, questions, read_released, read_submitted
from grading.core.sandbox import Limits
from grading.core.tasks import Lab, Task
from grading.core.verdicts import ExerciseVerdict, Line, NotebookVerdict, Store, write_whole
from grading.lms import archives, class_page, final, gradebook, intake, late, newer, settings, tables
from grading.lms.engines import Engine, engine
from grading.lms.final import Final
from grading.lms.gradebook import GradebookError
from grading.lms.roster import Roster, Student, of_lab
from grading.lms.submissions import Refusal, Submission, find_submissions

if TYPE_CHECKING:
    from grading.gpu_stage.devices import Timer

NOBODY = Roster()


@dataclass
class ClassResult:
    """A graded class: tasks by student, and who was not looked at, with the reason."""

    lab: Lab
    tasks: dict[str, list[Task]] = field(default_factory=dict)
    refused: dict[str, Refusal] = field(default_factory=dict)
    people: dict[str, Student] = field(default_factory=dict)  # by id
    table: list[Final] = field(default_factory=list)  # of everybody, whoever was in this run
    others: dict[str, list[Final]] = field(default_factory=dict)  # the same of the other labs, by name
    unmatched: dict[str, dict[str, Refusal]] = field(default_factory=dict)  # nobody's files of the other labs
    notes: list[str] = field(default_factory=list)  # what a person should know, a line each
    seconds: float = 0.0

    def points(self, student: str) -> float:
        return round(sum(t.verdict.points for t in self.tasks[student] if t.verdict), 2)

    def of(self) -> float:
        return round(sum(q.points for asked in self.lab.questions.values() for q in asked), 2)

    def reason(self, student: str) -> str:
        """Why a student is ungraded, in whole or in part; empty for most."""
        return final.reasons({t.notebook: t.verdict for t in self.tasks[student] if t.verdict})


def open_lab(course: Course, lab: str) -> Lab:
    """Read a released lab; raises ReleaseError where it does not fit its exercises.

    A notebook that is only read, without a cell to answer in, is not handed in and is left out.
    """
    paths = sorted((course.labs / lab).glob("*.ipynb"))
    if not paths:
        known = sorted(p.name for p in course.labs.glob("[0-9]*"))
        there = ", ".join(known) or "none"
        raise ReleaseError(f"no released lab '{lab}'{guess(lab, known)} in {course.labs}; there are: {there}")
    notebooks = {p.stem: read_released(p) for p in paths}
    notebooks = {name: each for name, each in notebooks.items() if any(map(is_solution, each.cells))}
    asked = {name: questions(notebook) for name, notebook in notebooks.items()}
    if not any(asked.values()):
        raise ReleaseError(f"{lab} has no test cell, so there is nothing to grade")
    return Lab(lab, notebooks, asked)


def plan(course: Course, lab: Lab, submissions: list[Submission], store: Store, environ: str) -> ClassResult:
    """Graft every submission and look up what is known; nothing is run."""
    result = ClassResult(lab)
    for submission in submissions:
        if submission.refused:
            result.refused[submission.student] = submission.refused
            continue
        result.people[submission.student] = submission.who
        tasks = []
        for name in lab.notebooks:
            stored = store.get(submission.student, lab.name, name)
            task = _task(lab, submission, name, environ, stored.ungraded if stored else "")
            if task.verdict is None and stored is not None and stored.key == task.key:
                task.verdict, task.known = stored, True
            tasks.append(task)
        result.tasks[submission.student] = tasks
    return result


def _task(lab: Lab, submission: Submission, name: str, environ: str, before: str) -> Task:
    """`before` says why an earlier run had no verdict: the files that are no notebook are not kept."""
    released = lab.notebooks[name]
    if name not in submission.notebooks and submission.notebooks:
        return _missing_part(lab, submission.student, name, environ)
    try:
        if name not in submission.notebooks:
            found = texts.clean(texts.some(submission.others)) or texts.NOTHING_ELSE
            why = texts.NO_LAB.format(expected=f"{name}.ipynb", found=found)
            raise NotebookError(before if before and not submission.others else why)
        grafted = graft(released, read_submitted(submission.notebooks[name]), name, lab.name)
    except NotebookError as error:
        empty = graft(released, list(released.cells), name, lab.name)
        verdict = ungraded(lab.questions[name], str(error), empty.digest, f"{environ}-{error}")
        return Task(submission.student, name, _packed(empty), verdict.key, verdict)
    return Task(submission.student, name, _packed(grafted), f"{grafted.digest}-{environ}")


def _missing_part(lab: Lab, student: str, name: str, environ: str) -> Task:
    """A notebook that was not handed in, beside one of the same lab that was, has 0 points for good."""
    empty = graft(lab.notebooks[name], list(lab.notebooks[name].cells), name, lab.name)
    why = texts.PART_MISSING.format(name=name)
    exercises = tuple(
        ExerciseVerdict(q.exercise, q.cell, (Line("right", 0.0, q.points, why, "", why),))
        for q in lab.questions[name]
    )
    verdict = NotebookVerdict(f"{environ}-{why}", empty.digest, exercises)
    return Task(student, name, _packed(empty), verdict.key, verdict, missing=True)


def _incomplete(result: ClassResult) -> Iterator[str]:
    """Who handed in some notebooks of a lab and not the others, in a line."""
    names = {
        student: [task.notebook for task in tasks if task.missing] for student, tasks in result.tasks.items()
    }
    if found := [f"{student} ({', '.join(missing)})" for student, missing in names.items() if missing]:
        yield f"a notebook that was not handed in counts as 0 points: {texts.some(found)}"


def _packed(grafted: Graft) -> bytes:
    return zlib.compress(pickle.dumps(grafted))


def ungraded(asked: tuple[Question, ...], reason: str, submission: str, key: str) -> NotebookVerdict:
    """No verdict on a whole notebook: 0 points, and the reason at each exercise."""
    exercises = tuple(
        ExerciseVerdict(q.exercise, q.cell, (Line("right", 0.0, q.points),), ungraded=reason) for q in asked
    )
    return NotebookVerdict(key, submission, exercises, ungraded=reason)


def judge_all(result: ClassResult, judges: Engine, store: Store, tell: Callable[[Task], None]) -> None:
    """Work out every missing verdict and store it at once. `tell` hears of each."""
    todo = [t for tasks in result.tasks.values() for t in tasks if t.verdict is None][::-1]
    asked = result.lab.questions
    jobs: dict[Future[NotebookVerdict], Task] = {}
    while todo or jobs:
        while todo and len(jobs) < judges.room:
            task = todo.pop()
            jobs[judges.submit(task.graft, asked[task.notebook], task.key)] = task
        for job in wait(jobs, return_when=FIRST_COMPLETED).done:
            task = jobs.pop(job)
            try:
                task.verdict = job.result()
            except Exception as error:  # without a key, so that the next run tries again
                reason = judges.reason(error)
                task.verdict = ungraded(asked[task.notebook], reason, task.graft.digest, "")
            store.put(task.student, result.lab.name, task.notebook, task.verdict)
            tell(task)


@contextmanager
def interruptible() -> Iterator[None]:
    """A polite end (SIGTERM) is treated as Ctrl-C: what was judged is stored, what runs is ended."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def save(course: Course, result: ClassResult, tell: Callable[[str], None], roster: Roster = NOBODY) -> int:
    """Fill the gradebook, the feedback and the tables; says how many students were new or changed."""
    lab = result.lab
    fresh: set[str] = set()  # whose feedback was written just now
    known = defaultdict(list)
    for cell in gradebook.held(course, lab.name):
        known[cell.student].append(cell)
    writer: gradebook.Writer | None = None  # not made for a class in which nothing changed
    for student, tasks in result.tasks.items():
        graded = gradebook.Graded(
            student,
            {t.notebook: t.graft.notebook for t in tasks},
            {t.notebook: t.verdict for t in tasks if t.verdict},
            course.submitted / student / lab.name / late.STAMP,
        )
        for task in tasks:
            if task.verdict and not task.known:
                Store(course.verdicts).put(student, lab.name, task.notebook, task.verdict)
        if not gradebook.is_written(course, lab.name, graded, known[student]):
            try:
                writer = writer or gradebook.Writer(course, lab.name)
                writer.write(graded)
            except GradebookError:
                raise
            except GradingError as error:  # of this student's notebook: the others go on
                result.refused[student] = Refusal(str(error))
            fresh.add(student)
        tell(student)
    for name in gradebook.labs(course):  # a person's points, a due date, the rule or slip days have changed
        late.apply(course, name)
        result.notes += gradebook.update_feedback(course, name, fresh if name == lab.name else ())
    gradebook.introduce(course, {**result.people, **roster.students})
    _write_tables(course, result, roster)
    return len(fresh)


def _write_tables(course: Course, result: ClassResult, roster: Roster) -> None:
    """The tables of all labs, because persons give points to any of them between two runs."""
    lab, rows = result.lab, []
    result.table = [
        replace(each, refused=refusal.reason if (refusal := result.refused.get(each.who.id)) else "")
        for each in final.table(course, lab.name, roster, result.people)
    ]
    result.notes += final.of_groups(settings.read(course).groups_of(lab.name), result.table)
    others = [name for name in gradebook.labs(course) if name != lab.name]
    rosters = {lab.name: roster, **{name: of_lab(course, name) for name in others}}
    result.others = {name: final.table(course, name, rosters[name]) for name in others}
    result.refused = {**final.unmatched(course, lab.name, result.table), **result.refused}
    result.unmatched = {name: final.unmatched(course, name, each) for name, each in result.others.items()}
    for name, table in {lab.name: result.table, **result.others}.items():
        rows += [each.row() for each in table]
        known = {each.who.id for each in table}
        refused = result.refused if name == lab.name else result.unmatched[name]
        rows += [each.row(who, name) for who, each in refused.items() if who not in known]
    tables.write_grades(course, {lab.name, *others}, rows)
    final.write(course, lab, result.table)
    for name, table in result.others.items():
        if course.grades.with_name(f"grades-{name}.csv").exists():
            with suppress(GradingError):  # a lab that is released no more keeps its last table
                final.write(course, open_lab(course, name), table)
    listed = [name for name, each in rosters.items() if each.path]
    class_page.write(course, {lab.name: result.table, **result.others}, listed)


def grade(
    course: Course,
    lab_name: str,
    folder: Path,
    *,
    limits: Limits | None = None,
    unsafe: bool = False,
    workers: int = 0,
    roster: Path | None = None,
    scheduler: str = "",
    gpus: Sequence[Timer] = (),
    keep: Sequence[str] = (),
    tell: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> ClassResult:
    """Grade a folder or zip of submissions of one lab, from the files to the gradebook.

    With `gpus` what passed is timed on them, too, where the lab has exercises that are. The earlier files of
    the students in `keep` count for good, although newer ones cannot be read.
    """
    limits = limits or Limits()
    if not unsafe and not scheduler and sandbox.obstacle():
        raise SandboxError(
            f"{sandbox.obstacle()}\nwithout a sandbox nothing is graded, unless you say --unsafe"
        )
    known = of_lab(course, lab_name, roster)
    settings.read(course)  # what is wrong in it is said before an hour is spent on verdicts
    gradebook.check(course)
    gradebook.check_place(course)
    with alone(course), named_until_it_ends(course, lab_name, folder):
        gradebook.remember_place(course)
        return _grade(
            course,
            open_lab(course, lab_name),
            folder,
            known,
            limits,
            unsafe,
            workers,
            scheduler,
            gpus,
            keep,
            tell,
        )


@contextmanager
def alone(course: Course) -> Iterator[None]:
    """One run at a time writes to a course's gradebook."""
    course.home.mkdir(parents=True, exist_ok=True)
    with (course.home / "running.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise GradingError(
                f"another run is grading into {course.home}: wait for it, or stop it"
            ) from error
        yield


@contextmanager
def named_until_it_ends(course: Course, lab: str, folder: Path) -> Iterator[None]:
    """So that later runs can say which run was killed and never begun again. A failure has said so itself."""
    given = "" if folder == course.submitted else f" {shlex.quote(str(folder.resolve()))}"
    others = [run for run in course.unfinished_runs() if run != lab + given]
    write_whole(course.unfinished, "\n".join([*others, lab + given]))
    try:
        yield
    except Exception:
        write_whole(course.unfinished, "\n".join(others))
        raise
    write_whole(course.unfinished, "\n".join(others))


def _grade(
    course: Course,
    lab: Lab,
    folder: Path,
    roster: Roster,
    limits: Limits,
    unsafe: bool,
    workers: int,
    scheduler: str,
    gpus: Sequence[Timer],
    keep: Sequence[str],
    tell: Callable[[str, int, int], None],
) -> ClassResult:
    if gpus:
        from grading.gpu_stage import stage  # which most runs need not wait for

        stage.check(lab)
    judge = Judge(environment.secret(course), limits, unsafe=unsafe)
    store = Store(course.verdicts)
    environ = environment.digest(course, [repr(limits), repr(lab.questions)])
    gradebook.register(course, lab.name, lab.notebooks)
    newer.keep(course, lab.name, keep)
    with archives.opened(folder) as opened:
        found, notes = intake.collect(course, lab, opened, roster, folder)
        result = plan(course, lab, found, store, environ)
    result.notes += [*notes, *_incomplete(result)]
    result.people = {**roster.students, **result.people}
    total = sum(len(tasks) for tasks in result.tasks.values())
    done = sum(t.verdict is not None for tasks in result.tasks.values() for t in tasks)
    tell("judging", done, total)

    def judged(task: Task) -> None:
        nonlocal done
        done += 1
        tell("judging", done, total)

    if done < total:
        workers = workers or max(1, len(os.sched_getaffinity(0)))
        with interruptible(), engine(judge, workers, scheduler) as judges:
            judge_all(result, judges, store, judged)
    if gpus:
        with interruptible():
            timer = Judge(judge.secret, limits, unsafe=unsafe)  # the engine has stopped the other one
            everybodys = [task for tasks in result.tasks.values() for task in tasks]

            def timed(done: int, whole: int) -> None:
                tell("on the GPU", done, whole)

            stage.time_class(course, result.lab, everybodys, timer, gpus, store, timed)
    count = 0

    def saved(student: str) -> None:
        nonlocal count
        count += 1
        tell("gradebook", count, len(result.tasks))

    save(course, result, saved, roster)
    return result


def grafts(course: Course, lab: Lab, folder: Path) -> tuple[dict[str, dict[str, NotebookNode]], list[str]]:
    """The answers of all who handed in something readable, by notebook and student, and a line for each file
    that cannot be read and for whoever handed in no notebook. Nothing is judged."""
    found: dict[str, dict[str, NotebookNode]] = {name: {} for name in lab.notebooks}
    unread: list[str] = []
    with archives.opened(folder) as opened, tempfile.TemporaryDirectory(prefix="gpulab-zips-") as scratch:
        everybody = find_submissions(
            opened, lab.name, list(lab.notebooks), of_lab(course, lab.name), folder,
            scratch=Path(scratch), marks=lab.marks,
        )  # fmt: skip
        for submission in everybody:
            if submission.others and not submission.notebooks:
                others = texts.some(submission.others)
                unread.append(f"{submission.student}: no notebook of {lab.name}; found: {others}")
            for name, path in submission.notebooks.items():
                try:
                    submitted = read_submitted(path)
                    grafted = graft(lab.notebooks[name], submitted, name, lab.name)
                    found[name][submission.student] = grafted.notebook
                except NotebookError as error:
                    unread.append(f"{submission.student}: {error}")
    return found, unread
