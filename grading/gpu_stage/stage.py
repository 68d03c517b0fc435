"""`python -m grading grade LAB --gpu`: times what passed, and writes its speed into the verdicts.

Of every submission that passed an exercise of `gpulab.checks.speeds`, the cells run in the sandbox once
more, on handles of larger arrays; a limited child makes machine code of what they recorded, and the program
takes turns with that of the lab's own solution on a GPU. Each GPU times one submission at a time.
"""

from __future__ import annotations

import hashlib
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import jupytext
import numpy as np
from nbformat import NotebookNode

from gpulab.checks import cases as contents
from gpulab.checks import compare, registry
from gpulab.checks.spec import Case, Exercise
from gpulab.checks.speeds import SPEEDS, Speed
from gpulab.simulator import hardware
from grading.core import limited, sandbox, texts
from grading.core.course import Course
from grading.core.environment import seed
from grading.core.errors import GradingError, Unjudged
from grading.core.judge import Judge, exercise_step, job_bytes, steps_of
from grading.core.notebooks import Question, with_stable_ids
from grading.core.replay import exercise_of
from grading.core.tasks import Lab, Task
from grading.core.verdicts import ExerciseVerdict, Line, NotebookVerdict, Store
from grading.gpu_stage.devices import Timer, stop_all
from grading.gpu_stage.program import Program, from_data, programs
from grading.gpu_stage.protocol import Arrays, Contest, Settings, Side, Timing, Trouble, measure
from grading.gpu_stage.statistics import least_seconds

OTHER_POISON = 0xB4  # what stands in each byte of an output in every other turn: a tiny negative number
Programs = dict[str, dict[str, Program] | Timing]  # by exercise: programs by case, or why there are none


def time_class(
    course: Course,
    lab: Lab,
    tasks: Iterable[Task],
    judge: Judge,
    devices: Sequence[Timer],
    store: Store,
    tell: Callable[[int, int], None] = lambda done, total: None,
    settings: Settings | None = None,
) -> None:
    """Time every submission of a class that has not been timed yet, and store its verdict at once.

    Raises GradingError where the lab's own solution cannot be timed.
    """
    solutions = _Solutions(course, lab, judge)
    todo: queue.SimpleQueue[Task] = queue.SimpleQueue()
    tasks = [task for task in tasks if task.verdict and passed(task, lab)]
    for task in tasks:
        todo.put(task)
    stopped, done, lock = threading.Event(), 0, threading.Lock()

    def work(device: Timer) -> None:
        nonlocal done
        while not stopped.is_set():
            try:
                task = todo.get_nowait()
            except queue.Empty:
                return
            assert task.verdict is not None
            if task.verdict.timed != mark(task.verdict, device):
                verdict = _timed(task, lab, solutions, judge, device, settings)
                if stopped.is_set():  # what was killed is no verdict
                    return
                task.verdict = verdict
                store.put(task.student, lab.name, task.notebook, task.verdict)
            with lock:
                done += 1
                tell(done, len(tasks))

    with ThreadPoolExecutor(len(devices)) as pool:
        try:
            for job in [pool.submit(work, device) for device in devices]:
                job.result()
        except BaseException:
            stopped.set()
            sandbox.stop_all()
            stop_all()
            raise


def check(lab: Lab) -> None:
    """Raises GradingError where nothing of a lab is timed."""
    if not any(timed_questions(asked) for asked in lab.questions.values()):
        raise GradingError(texts.NOTHING_TIMED.format(lab=lab.name))


def timed_questions(asked: Iterable[Question]) -> tuple[Question, ...]:
    """Those whose exercise is timed at all."""
    return tuple(q for q in asked if q.exercise in SPEEDS and exercise_of(q.exercise).evidence.launches)


def passed(task: Task, lab: Lab) -> tuple[Question, ...]:
    """The timed questions of a notebook whose answers passed, speed aside."""
    assert task.verdict is not None
    found = {v.exercise: replace(v, lines=_without_speed(v)) for v in task.verdict.exercises}
    return tuple(
        q
        for q in timed_questions(lab.questions[task.notebook])
        if q.exercise in found and found[q.exercise].passed
    )


def mark(verdict: NotebookVerdict, device: Timer) -> str:
    """What a timing is of: the same verdict on the same kind of device is not timed again."""
    text = "\0".join([verdict.key, device.name, device.driver])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _timed(
    task: Task, lab: Lab, solutions: _Solutions, judge: Judge, device: Timer, settings: Settings | None
) -> NotebookVerdict:
    """The verdict on a notebook with the speed of what passed."""
    verdict = task.verdict
    assert verdict is not None
    asked = passed(task, lab)
    theirs = _programs(task.graft.notebook, asked, judge, device)
    found: dict[str, ExerciseVerdict] = {}
    for question in asked:
        reference = solutions.programs(task.notebook, device)[question.exercise]
        if isinstance(reference, Timing):
            raise GradingError(texts.NO_SOLUTION.format(why=f"{question.exercise}: {reference.why}"))
        submitted = theirs[question.exercise]
        if isinstance(submitted, Timing):
            timing = submitted
        else:
            numbers = _Numbers(judge.secret, verdict.submission, question.exercise)
            timing = time_exercise(question.exercise, submitted, reference, numbers, judge, device, settings)
        wanted = SPEEDS[question.exercise]
        before = next(v for v in verdict.exercises if v.exercise == question.exercise)
        found[question.exercise] = with_speed(before, timing, wanted, device.name)
    exercises = tuple(found.get(v.exercise, v) for v in verdict.exercises)
    return replace(verdict, exercises=exercises, timed=mark(verdict, device))


@dataclass(frozen=True)
class _Numbers:
    """Seeds of the contents: new in every turn, and nobody without the course's secret knows them."""

    secret: bytes
    submission: str
    exercise: str

    def __call__(self, case: str, turn: int) -> int:
        return seed(self.secret, self.submission, self.exercise, f"{case}, turn {turn}")


def time_exercise(
    name: str,
    submitted: dict[str, Program],
    reference: dict[str, Program],
    numbers: Callable[[str, int], int],
    judge: Judge,
    device: Timer,
    settings: Settings | None = None,
) -> Timing:
    """Let both take turns on the device, at all cases of the exercise."""
    exercise, wanted = registry.find(name), SPEEDS[name]
    try:
        gpu = hardware.find(device.name)
    except hardware.UnknownGPU:
        return Timing("unclear", texts.UNKNOWN_GPU.format(device=texts.clean(device.name, 80)))
    try:
        with device.alone(), ExitStack() as stack:
            contests = [
                _contest(
                    exercise,
                    case,
                    stack.enter_context(device.side(submitted[case.name], judge.limits.patience)),
                    stack.enter_context(device.side(reference[case.name], judge.limits.patience)),
                    numbers,
                    least_seconds(gpu, wanted, case.sizes),
                )
                for case in wanted.cases
            ]
            return measure(contests, settings)
    except Trouble as trouble:  # a child that never came up
        return Timing("unclear", str(trouble))


@dataclass(frozen=True)
class _Drawn:
    """The contents of one turn, and what should come of them."""

    made: tuple[contents.Argument, ...]
    expected: dict[str, np.ndarray]


def _contest(
    exercise: Exercise,
    case: Case,
    submission: Side,
    reference: Side,
    numbers: Callable[[str, int], int],
    least: float,
) -> Contest:
    truth = registry.reference(exercise.name)

    def draw(turn: int) -> _Drawn:
        made = contents.arguments(exercise, case, numbers(case.name, turn))
        for argument in made if turn // 2 % 2 else ():  # turns of one side are even or odd
            if argument.role == "out" and argument.value.dtype != bool:
                argument.value.reshape(-1).view(np.uint8)[:] = OTHER_POISON
        return _Drawn(made, contents.expected(truth, made, case))

    def arrays(drawn: _Drawn) -> Arrays:
        return [a.value for a in drawn.made if a.role != "scalar"]

    def wrong(drawn: _Drawn, after: Arrays) -> str:
        given = (a for a in drawn.made if a.role != "scalar")
        for argument, left in zip(given, after, strict=True):
            if argument.role == "in":
                if argument.value.tobytes() != left.tobytes():
                    return texts.INPUT_CHANGED.format(array=argument.name)
                continue
            should = drawn.expected.get(argument.name, argument.value)
            found = compare.mismatch(argument.name, left, should, exercise.rtol, exercise.atol)
            if found is not None:
                return _mismatch(found)
        return ""

    return Contest(case.name, submission, reference, draw, arrays, wrong, least)


def _mismatch(found: compare.Mismatch) -> str:
    got, should = (compare.value_words(a[found.first]) for a in (found.got, found.expected))
    index = ", ".join(map(str, found.first))
    return texts.OUTPUT_WRONG.format(array=found.array, index=index, got=got, expected=should)


def with_speed(verdict: ExerciseVerdict, timing: Timing, wanted: Speed, device: str) -> ExerciseVerdict:
    """A verdict with a line on the speed, which costs nothing unless the course says so; noise never does."""
    summary, reason, lost, doubt = "", "", 0.0, ""
    if timing.state == "measured" and timing.speed is not None:
        ends = {"low": timing.speed.low, "middle": timing.speed.middle, "high": timing.speed.high}
        summary = texts.SPEED_OF.format(**ends, pairs=timing.pairs, device=texts.clean(device, 80))
        lost = wanted.lost(timing.speed.low)
        if timing.speed.low < wanted.ratio:
            reason = texts.SPEED_MISSED.format(low=timing.speed.low, ratio=wanted.ratio)
    elif timing.state == "wrong":
        summary, reason, lost = texts.NOT_TIMED, timing.why, wanted.costs
    else:
        summary = (
            texts.NO_SPEED.format(why=timing.why) if wanted.costs else f"{texts.NOT_TIMED}: {timing.why}"
        )
        doubt = timing.why if wanted.costs else ""
    if not wanted.costs:
        reason = "\n".join(filter(None, [reason, texts.SPEED_TOLD]))
    short = summary if lost else ""
    line = Line(texts.SPEED, 0.0 - lost, 0.0, summary, reason, short)
    return replace(verdict, lines=(*_without_speed(verdict), line), doubt=doubt)


def _without_speed(verdict: ExerciseVerdict) -> tuple[Line, ...]:
    return tuple(line for line in verdict.lines if line.label != texts.SPEED)


def _programs(notebook: NotebookNode, asked: tuple[Question, ...], judge: Judge, device: Timer) -> Programs:
    """What a notebook's cells record at the timed cases, as programs for a device."""
    by_cell = {q.cell: q for q in asked}
    steps: list[dict[str, Any]] = []
    for step in steps_of(notebook):
        if "cell" in step:
            steps.append(step)
        elif question := by_cell.get(step["test"]):
            wanted = SPEEDS[question.exercise].cases
            steps.append(exercise_step(question, exercise_of(question.exercise), wanted, [0] * len(wanted)))
    cases = {q.exercise: SPEEDS[q.exercise].cases for q in asked}
    try:
        outcome = judge.record(job_bytes({"patience": judge.limits.patience, "steps": steps}))
        made = limited.call(
            programs, outcome.content, judge.ended(outcome), asked, cases, device.cc, limits=judge.limits
        )
    except (limited.Ended, Unjudged) as error:
        return {q.exercise: Timing("unclear", str(error)) for q in asked}
    return {
        name: Timing("wrong", found["refused"])
        if "refused" in found
        else {case: from_data(program) for case, program in found["cases"].items()}
        for name, found in made.items()
    }


class _Solutions:
    """The lab's own solutions as programs, made once for each notebook and compute capability."""

    def __init__(self, course: Course, lab: Lab, judge: Judge) -> None:
        self.course, self.lab, self.judge = course, lab, judge
        self._made: dict[tuple[str, Any], Programs] = {}
        self._lock = threading.Lock()

    def programs(self, notebook: str, device: Timer) -> Programs:
        with self._lock:
            if (notebook, device.cc) not in self._made:
                source = self.course.solutions / self.lab.name / f"{notebook}.py"
                if not source.is_file():
                    raise GradingError(texts.NO_SOLUTION.format(why=f"{source} is not there"))
                solved = with_stable_ids(jupytext.read(source), notebook)
                asked = timed_questions(self.lab.questions[notebook])
                self._made[notebook, device.cc] = _programs(solved, asked, self.judge, device)
            return self._made[notebook, device.cc]
