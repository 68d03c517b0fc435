"""Attacks and odd honest answers as data, and how they are judged.

A file's head is comment lines ``# key: value``:

    how       what it does, in a sentence
    exercise  whose solution cell it replaces
    earns     the points that its honest part deserves; all of the exercise's where the line is missing
    says      words that the verdict must contain, in either case; several are separated by ``…``
    also      other exercises of the notebook that are asked in the same run, and what they must still earn:
              ``memory.copy 4, memory.sectors 3``
    alone     ``yes``: it may disturb others in its process, so that it gets one of its own
    slow      ``yes``: it takes so long that `make test` leaves it out
    limits    of a run of its own, in seconds: all of it, and one cell or exercise, such as ``20 4``

Attacks that are no cell have a head, too (`how`, `says`, `earns`), and a function that is called in the
instructor's process: ``edit(notebook)`` in `notebooks/`, ``hand_in(path, notebook, course)`` in `hand_ins/`.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import jupytext
from nbformat import NotebookNode

from gpulab.checks import registry
from gpulab.checks.spec import Case
from grading.core import linking, recordings, sandbox, texts
from grading.core.course import Course, sources
from grading.core.environment import seed
from grading.core.errors import ReleaseError
from grading.core.judge import exercise_step, job_bytes, judge_cases, live, steps_of
from grading.core.notebooks import Question, questions, with_stable_ids
from grading.core.replay import ReplayJob, exercise_of
from grading.core.replays import Replays
from grading.core.sandbox import Limits
from grading.core.verdicts import ExerciseVerdict, NotebookVerdict, as_text

HERE = Path(__file__).parent
HEAD = re.compile(r"# (how|exercise|earns|says|also|alone|slow|limits):(?: (.*))?")
TOGETHER = Limits(seconds=400, patience=30)
ALONE = Limits(seconds=120, patience=40)
SECRET = b"red team"


@dataclass(frozen=True)
class Play:
    """One answer to one exercise, and how its verdict must read."""

    path: Path
    how: str
    exercise: str
    source: str
    earns: float
    says: tuple[str, ...] = ()
    also: dict[str, float] = field(default_factory=dict)
    alone: bool = False
    slow: bool = False
    limits: Limits = ALONE

    @property
    def name(self) -> str:
        return self.path.stem

    def problem(self, verdicts: dict[str, ExerciseVerdict]) -> str:
        """What is wrong with its verdicts, by exercise; empty if nothing is."""
        for exercise, points in {self.exercise: self.earns, **self.also}.items():
            verdict = verdicts[exercise]
            if abs(verdict.points - points) > 0.005:
                return f"{exercise} earns {verdict.points:g} instead of {points:g}: {text_of(verdict)}"
        text = text_of(verdicts[self.exercise]).lower()
        missing = [words for words in self.says if words.lower() not in text]
        return f"does not say '{missing[0]}': {text}" if missing else ""


def text_of(verdict: ExerciseVerdict) -> str:
    """What a learner reads of a verdict, in one line."""
    whole = NotebookVerdict("", "", (verdict,))
    return " ".join(as_text(verdict, whole).split())


def head_of(source: str) -> dict[str, str]:
    """The head of a file, by key."""
    lines = takewhile(bool, map(HEAD.fullmatch, source.splitlines()))
    return {match[1]: match[2] or "" for match in lines if match}


def read(path: Path) -> Play:
    """The play of one file. Raises ReleaseError for a head that cannot be read."""
    source = path.read_text(encoding="utf-8")
    head = head_of(source)
    try:
        exercise = head["exercise"]
        also = [item.rsplit(maxsplit=1) for item in head["also"].split(",")] if "also" in head else []
        limits = ALONE
        if "limits" in head:
            seconds, patience = map(float, head["limits"].split())
            limits = replace(ALONE, seconds=seconds, patience=patience)
        return Play(
            path,
            head["how"],
            exercise,
            source,
            float(head["earns"]) if "earns" in head else registry.find(exercise).points,
            tuple(words.strip() for words in head.get("says", "").split("…") if words.strip()),
            {name.strip(): float(points) for name, points in also},
            bool({"alone", "also", "limits"} & head.keys()),
            "slow" in head,
            limits,
        )
    except (KeyError, ValueError) as error:
        raise ReleaseError(f"{path.name}: its head cannot be read: {error!r}") from error


@dataclass(frozen=True)
class Act:
    """An attack that is no cell: what is done to a notebook, or to the folder of submissions."""

    name: str
    do: Callable[..., None]
    says: str
    earns: float


def acts(kind: str) -> list[Act]:
    """All of ``notebooks`` or of ``hand_ins``."""
    found = []
    for path in sorted((HERE / kind).glob("*.py")):
        head = head_of(path.read_text(encoding="utf-8"))
        do = runpy.run_path(str(path))["edit" if kind == "notebooks" else "hand_in"]
        found.append(Act(path.stem, do, head.get("says", ""), float(head.get("earns", 0))))
    return found


def plays(kind: str) -> list[Play]:
    """All of ``attacks`` or of ``honest``."""
    return [read(path) for path in sorted((HERE / kind).glob("*.py"))]


def of_lab(lab: str) -> list[Play]:
    """Attacks and honest answers on exercises of one lab, or all. Raises ReleaseError where there is none."""
    every = plays("attacks") + plays("honest")
    numbers = [registry.lab_number(registry.find(play.exercise).lab) for play in every]
    wanted = registry.lab_number(lab)
    found = [play for play, number in zip(every, numbers, strict=True) if not lab or number == wanted]
    if not found:
        raise ReleaseError(f"nothing on lab '{lab}'; there is on {', '.join(sorted(set(numbers)))}")
    return found


@cache
def source_of(course: Course, exercise: str) -> Path:
    """The source of the notebook that asks an exercise."""
    number = registry.lab_number(registry.find(exercise).lab)
    for folder in course.solutions.glob(f"{number}*"):
        for source in sources(folder):
            if f'gpulab.check("{exercise}"' in source.read_text(encoding="utf-8"):
                return source
    raise ReleaseError(f"no notebook asks {exercise}")


@cache
def solved(source: Path) -> NotebookNode:
    """A notebook with its solutions."""
    return with_stable_ids(jupytext.read(source), source.stem)


def runs(course: Course, chosen: Iterable[Play]) -> list[list[Play]]:
    """The plays, grouped by who shares a process: those of one notebook that do not disturb one another."""
    found: dict[str, list[Play]] = {}
    for play in chosen:
        name = source_of(course, play.exercise).stem + " slow" * play.slow
        name = f"alone {play.name}" if play.alone else name
        found.setdefault(name, []).append(play)
    return list(found.values())


def judge(
    course: Course, together: list[Play], unsafe: bool = False
) -> dict[str, dict[str, ExerciseVerdict]]:
    """The verdicts of plays that share a process, by play and exercise."""
    found: dict[str, dict[str, ExerciseVerdict]] = {play.name: {} for play in together}
    for verdict in Replays(_limits(together)).verdicts(recorded(course, together, unsafe)):
        exercise, _, name = verdict.exercise.partition("@")
        found[name][exercise] = verdict
    return found


def recorded(course: Course, together: list[Play], unsafe: bool = False) -> ReplayJob:
    """The record of plays that share a process, ready to be replayed; a question is ``exercise@play``."""
    notebook = solved(source_of(course, together[0].exercise))
    limits = _limits(together)
    steps, asked = _steps(notebook, together)
    chosen = {q.exercise: judge_cases(exercise_of(q.exercise)) for q in asked}
    seeds = {(q.exercise, case.name): _seed(q, case) for q in asked for case in chosen[q.exercise]}
    recording = recordings.whole(
        {"patience": limits.patience, "steps": steps},
        limits,
        lambda job, limits: sandbox.record(job_bytes(job), limits, unsafe=unsafe),
    )
    outcome = recording.outcome
    ends = {"done": "", "stopped": texts.STOPPED.format(seconds=limits.seconds)}
    end = ends.get(outcome.end, texts.DIED.format(how=texts.clean(outcome.how, 120)))
    return ReplayJob(
        outcome.content,
        end,
        tuple(asked),
        chosen,
        seeds,
        {step["cell"]: step["source"] for step in steps if "source" in step},
        {},
        live(recording.survived(steps), tuple(asked), chosen, seeds, limits, unsafe=unsafe),
        linked=linking.linked(
            outcome.content, limits.patience, lambda job: sandbox.record(job, limits, unsafe=unsafe)
        ),
    )


def _limits(together: list[Play]) -> Limits:
    return together[0].limits if together[0].alone else TOGETHER


def _seed(question: Question, case: Case) -> int:
    return seed(SECRET, "", question.exercise, case.name)


def _steps(notebook: NotebookNode, together: list[Play]) -> tuple[list[dict[str, Any]], list[Question]]:
    """One recording: the notebook's solutions, and where an exercise is asked the plays that answer it."""
    by_cell = {q.cell: q for q in questions(notebook)}
    steps: list[dict[str, Any]] = []
    asked: list[Question] = []
    since: list[dict[str, Any]] = []  # the cells since the last test, which undo a play

    def ask(question: Question, name: str) -> None:
        named = replace(question, exercise=f"{question.exercise}@{name}")
        exercise = registry.find(question.exercise)
        cases = judge_cases(exercise)
        asked.append(named)
        steps.append(exercise_step(named, exercise, cases, [_seed(named, case) for case in cases]))

    for step in steps_of(notebook):
        if "cell" in step:
            steps.append(step)
            since.append(step)
            continue
        question = by_cell[step["test"]]
        for play in together:
            if question.exercise == play.exercise:
                # The lab's own solution would answer for a play that defines nothing: it gets another name.
                aside = f"the_labs_own = globals().pop({question.function!r}, None)"
                steps.append({"cell": f"before {play.name}", "source": aside})
                steps.append({"cell": play.name, "source": play.source})
                ask(question, play.name)
                steps += [] if play.alone else since
            elif question.exercise in play.also:
                ask(question, play.name)
        since = []
    last = max(i for i, step in enumerate(steps) if "exercise" in step)
    return steps[: last + 1], asked


def results(course: Course, chosen: Iterable[Play], unsafe: bool = False) -> Iterator[tuple[Play, str]]:
    """Each play with what is wrong with its verdict; an empty text if nothing is."""
    for together in runs(course, chosen):
        verdicts = judge(course, together, unsafe)
        for play in together:
            yield play, play.problem(verdicts[play.name])
