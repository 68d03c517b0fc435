"""Runs in a limited child: a record → verdicts, on contents that did not exist when it was made.

What is done with a record its kind of evidence knows: the judge says what the learner's check says, at other
sizes on other contents.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any
from unittest import mock

from gpulab.checks import messages, registry
from gpulab.checks.evidence import KINDS
from gpulab.checks.parts import Detail, Part
from gpulab.checks.refusals import Refused
from gpulab.checks.spec import EVERY, Answer, Budget, Case, Contents, Exercise
from gpulab.checks.verdict import no_points
from gpulab.foundation import syntax_trees
from gpulab.simulator.compile import CompileError
from gpulab.simulator.compile.cuda_c import digest
from grading.core import texts
from grading.core.errors import RecordError
from grading.core.notebooks import Question
from grading.core.records import Failure, Record, read_record
from grading.core.verdicts import ExerciseVerdict, Line

# What was judged while the learner's code ran, by exercise and case.
Live = Mapping[tuple[str, str], Any]


@dataclass(frozen=True)
class ReplayJob:
    """All that a child needs. `seeds` are by exercise and case; `sources` by cell, for messages."""

    content: bytes
    end: str  # how the recording ended: nothing, or why it was cut short
    questions: tuple[Question, ...]
    cases: dict[str, tuple[Case, ...]]
    seeds: dict[tuple[str, str], int]
    sources: dict[str, str]
    notes: dict[str, str]  # by exercise: what was odd about its cell
    outcomes: Live = field(default_factory=dict)  # of exercises for several ranks, and of dialogues
    tolerance: float = 1.0  # times the exercise's; a proof asks for less than a learner must keep
    doubts: dict[str, str] = field(default_factory=dict)  # by exercise: why a person should look at it
    linked: bytes = b""  # what the linker's sandbox said of the kernels, see `linking`


def verdicts(job: ReplayJob) -> Iterator[ExerciseVerdict]:
    """The verdict on each exercise, in order."""
    try:
        record = read_record(job.content)
    except RecordError as error:
        record = Record()
        record.failures = {q.exercise: Failure("record", str(error)) for q in job.questions}
    for name, recorded in record.recorded.items():
        if recorded:
            KINDS[name].prepare()
    with known_sources(record, job.sources):
        for question in job.questions:
            yield _verdict(question, job, record)


def _verdict(question: Question, job: ReplayJob, record: Record) -> ExerciseVerdict:
    exercise = judged(exercise_of(question.exercise), job.cases[question.exercise], job.tolerance)
    seeds = {case.name: job.seeds[question.exercise, case.name] for case in exercise.cases}
    parts = _parts(exercise, question, record, seeds, job)
    version = exercise.evidence.counted_with()
    counted = texts.COUNTED_WITH.format(version=version) if version else ""
    left_out = record.notes.get(question.exercise, ())
    notes = tuple(filter(None, [job.notes.get(question.exercise), *left_out, counted]))
    names = tuple(case.name for case in exercise.cases)
    verdict = ExerciseVerdict(question.exercise, question.cell, tuple(map(_line, parts)), names, notes)
    doubt = record.doubt(question.exercise) or job.doubts.get(question.exercise, "")
    doubt = "" if verdict.passed else doubt
    return replace(verdict, doubt=doubt) if doubt else verdict


@contextmanager
def known_sources(record: Record, sources: dict[str, str]) -> Iterator[None]:
    """Messages may quote the submission's own cells and nothing else.

    PTX says itself which file a line is from, so a forged one could name any file of this machine. Of CUDA
    C++ it names the text's digest: the text is looked for among the strings of the cells.
    """
    lines: dict[str, Any] = {
        f"<cell {cell}>": (len(text), None, text.splitlines(keepends=True), cell)
        for cell, text in sources.items()
    }
    texts_in_c = {digest(text): text for text in strings(sources.values())}
    for kernel in record.kernels.values():
        for path, cell in re.findall(r'\.file\s+\d+\s+"([^"\n]*<cell ([^">\n]*)>)"', kernel.ptx):
            if cell in sources:
                text = sources[cell]
                lines[path] = (len(text), None, text.splitlines(keepends=True), path)
        for path, name in re.findall(r'\.file\s+\d+\s+"(<cuda (\w+)>/[\w.-]+)"', kernel.ptx):
            if name in texts_in_c:
                text = texts_in_c[name]
                lines[path] = (len(text), None, text.splitlines(keepends=True), path)
    with (
        mock.patch.object(linecache, "cache", lines),
        mock.patch.object(linecache, "updatecache", lambda *_: []),
    ):
        yield


def strings(sources: Iterable[str]) -> Iterator[str]:
    """The string constants of Python cells; cells that are no Python have none."""
    for source in sources:
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            nodes = ast.walk(syntax_trees.parse(source))
            yield from (n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))


def exercise_of(name: str) -> Exercise:
    """The exercise of a question; ``memory.copy@plain`` is a variant of memory.copy, see prove.py."""
    return registry.find(name.partition("@")[0])


def judged(exercise: Exercise, chosen: tuple[Case, ...], tolerance: float = 1.0) -> Exercise:
    """An exercise at the judge's cases. A budget on a public case is counted at the last one."""
    names = {case.name: case.name for case in chosen}

    def moved(budget: Budget) -> Budget:
        return budget if budget.case in (*names, EVERY) else replace(budget, case=None)

    return replace(
        exercise,
        cases=chosen,
        budgets=tuple(map(moved, exercise.budgets)),
        evidence=exercise.evidence.at_cases(names),
        rtol=exercise.rtol * tolerance,
        atol=exercise.atol * tolerance,
    )


def _parts(
    exercise: Exercise, question: Question, record: Record, seeds: dict[str, int], job: ReplayJob
) -> tuple[Part, ...]:
    if why := why_not(exercise, question, record, job):
        return no_points(exercise, "", (Detail(why),))
    contents = Contents(seeds, garbage_seed(seeds))
    answer = Answer(exercise, stand_in(question), registry.reference(exercise.name), contents)
    try:
        return exercise.evidence.replay(answer, recorded(exercise, question, record, job))
    except (Refused, CompileError) as error:
        return no_points(exercise, "", (Detail(str(error)),))


def garbage_seed(seeds: Mapping[str, int]) -> int:
    """A seed that follows from those of the contents, and so from the judge's secret."""
    return int.from_bytes(sha256(repr(sorted(seeds.items())).encode()).digest()[:8], "little")


def recorded(exercise: Exercise, question: Question, record: Record, job: ReplayJob) -> Mapping[str, Any]:
    """What there is of an exercise by case: from the record, or of a live kind how it went."""
    if exercise.evidence.live:
        return _fates(question, job)
    return record.recorded[exercise.evidence.kind].get(question.exercise, {})


def why_not(exercise: Exercise, question: Question, record: Record, job: ReplayJob) -> str:
    """Why there is nothing to examine; empty if there is."""
    end = job.end
    there = recorded(exercise, question, record, job)
    missing = [c.name for c in exercise.cases if c.name not in there]
    failure = record.failures.get(question.exercise)
    for outcome in _fates(question, job).values():
        if trouble := outcome.trouble:  # cases after it were not tried
            missing = []
            if failure is None and trouble.error in ("missing", "NotImplementedError", "NameError"):
                failure = Failure(trouble.error, f"{trouble.error}: {trouble.text}")
    if failure is not None and failure.kind == "missing":
        return _no_function(question.function, record, job)
    if failure is not None and failure.kind == "NotImplementedError":
        return texts.STUB
    if failure is not None and failure.kind == "NameError":
        return texts.NAME_OUTSIDE.format(error=failure.error)
    if failure is not None:
        return failure.error
    if missing and not record.done:
        end = end or texts.ENDED_ITSELF
        return (
            end if record.last == question.exercise else texts.NOT_REACHED.format(why=end, where=record.last)
        )
    return texts.NO_RECORD.format(case=missing[0]) if missing else ""


def _no_function(name: str, record: Record, job: ReplayJob) -> str:
    """Why there is no function of that name: the cell failed that should define it, or none defines it.

    Where no failed cell binds the name, it is the first that binds no other function that is asked for.
    """
    failed = {
        cell: cause for cell, cause in record.cell_failures.items() if cause.kind != "NotImplementedError"
    }
    others = {question.function for question in job.questions} - {name}
    own = [cell for cell in failed if _binds(job.sources.get(cell, ""), name)]
    rest = [cell for cell in failed if not any(_binds(job.sources.get(cell, ""), other) for other in others)]
    for cell in own + rest:
        return texts.NO_FUNCTION_AFTER.format(function=name, cell=cell, error=failed[cell].error)
    return texts.NO_FUNCTION.format(function=name)


def _binds(source: str, name: str) -> bool:
    """Whether a cell, which may be no Python, looks as if it defined the name."""
    word = re.escape(name)
    return bool(
        re.search(rf"\b(?:def|class|as)\s+{word}\b|\b{word}\s*(?:,[^=()\n]*|:[^=()\n]*)?=(?!=)", source)
    )


def _fates(question: Question, job: ReplayJob) -> dict[str, Any]:
    """How an exercise that was judged live fared, by case; nothing for another."""
    return {case: outcome for (name, case), outcome in job.outcomes.items() if name == question.exercise}


def stand_in(question: Question) -> Callable[[], None]:
    """A function that gives messages the learner's name of the real one."""

    def nothing() -> None:
        """Is never called: what the function did is known already."""

    nothing.__name__ = question.function
    return nothing


def _line(part: Part) -> Line:
    """A part of a check's verdict as a line of ours."""
    said = (d for d in part.details if d.lasts)
    details = "\n".join(f"line {d.line}: {d.text}" if d.line else d.text for d in said)
    short = ""
    if part.points < part.of and part.state != "wait":
        if part.metric:
            amounts = [messages.number_of(part.metric, v or 0.0) for v in (part.measured, part.budget)]
            short = texts.INSTEAD.format(label=part.label, measured=amounts[0], limit=amounts[1])
        else:
            short = part.details[0].text.splitlines()[0] if part.details else part.summary
    summary = " · ".join(re.split(r" {2,}", part.summary))
    return Line(part.label, part.points + 0.0, part.of, summary, details, short)  # + 0.0: no minus zero
