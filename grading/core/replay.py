"""Runs in a limited child: a record → verdicts, on contents that did not exist when it was made.

A record is turned back into something that `gpulab.checks` can examine: an object that launches what was
recorded when it is called. So the judge says what the check says, at other sizes on other contents.
"""

from __future__ import annotations

import ast
import linecache
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from gpulab.checks import (
    cases,
    checking,
    communication,
    compare,
    dialogues,
    messages,
    programs,
    registry,
    run,
    tensor_graphs,
    traces,
)
from gpulab.checks.on_host import MOST_CONSTANT, MOST_UPLOADED
from gpulab.checks.spec import EVERY, Budget, Case, Exercise
from gpulab.checks.verdict import Detail, Part
from gpulab.foundation.errors import Message
from gpulab.simulator import device as devices
from gpulab.simulator import simt
from gpulab.simulator.compile import CompiledKernel
from gpulab.simulator.compile.cuda_c import digest
from gpulab.subjects.distributed.network import Outcome
from grading.core import texts
from grading.core.errors import TraceError
from grading.core.notebooks import Question
from grading.core.traces import CaseTrace, Failure, Kernel, RecordedLaunch, Trace, Upload, read_trace
from grading.core.verdicts import ExerciseVerdict, Line

# What was judged while the learner's code ran, by exercise and case.
Live = Mapping[tuple[str, str], Outcome | dialogues.Outcome]


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


class Refused(Message):
    """A record that breaks a rule; the text says which."""


class Broken(BaseException):
    """The simulator or the judge failed, which is no learner's fault: no verdict, and a person looks at it.

    No Exception, so that nothing on the way takes it for a mistake in the submission.
    """


def verdicts(job: ReplayJob) -> Iterator[ExerciseVerdict]:
    """The verdict on each exercise, in order."""
    try:
        trace = read_trace(job.content)
    except TraceError as error:
        trace = Trace()
        trace.failures = {q.exercise: Failure("record", str(error)) for q in job.questions}
    if trace.graphs:
        tensor_graphs.prepare()
    with known_sources(trace, job.sources):
        for question in job.questions:
            yield _verdict(question, job, trace)


def _verdict(question: Question, job: ReplayJob, trace: Trace) -> ExerciseVerdict:
    exercise = judged(exercise_of(question.exercise), job.cases[question.exercise], job.tolerance)
    seeds = {case.name: job.seeds[question.exercise, case.name] for case in exercise.cases}
    parts = _parts(exercise, question, trace, seeds, job)
    counted = ""
    if exercise.evidence in ("tensor graph", "communication"):
        counted = texts.COUNTED_WITH.format(version=programs.version())
    left_out = trace.notes.get(question.exercise, ())
    notes = tuple(filter(None, [job.notes.get(question.exercise), *left_out, counted]))
    names = tuple(case.name for case in exercise.cases)
    verdict = ExerciseVerdict(question.exercise, question.cell, tuple(map(_line, parts)), names, notes)
    doubt = trace.doubt(question.exercise) or job.doubts.get(question.exercise, "")
    doubt = "" if verdict.passed else doubt
    return replace(verdict, doubt=doubt) if doubt else verdict


@contextmanager
def known_sources(trace: Trace, sources: dict[str, str]) -> Iterator[None]:
    """Messages may quote the submission's own cells and nothing else.

    PTX says itself which file a line is from, so a forged one could name any file of this machine. Of CUDA
    C++ it names the text's digest: the text is looked for among the strings of the cells.
    """
    lines: dict[str, Any] = {
        f"<cell {cell}>": (len(text), None, text.splitlines(keepends=True), cell)
        for cell, text in sources.items()
    }
    texts_in_c = {digest(text): text for text in strings(sources.values())}
    for kernel in trace.kernels.values():
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
            nodes = ast.walk(ast.parse(source))
            yield from (n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))


def exercise_of(name: str) -> Exercise:
    """The exercise of a question; ``memory.copy@plain`` is a variant of memory.copy, see prove.py."""
    return registry.find(name.partition("@")[0])


def judged(exercise: Exercise, chosen: tuple[Case, ...], tolerance: float = 1.0) -> Exercise:
    """An exercise at the judge's cases. A budget on a public case is counted at the last one."""
    names = {case.name for case in chosen}

    def moved(budget: Budget) -> Budget:
        return budget if budget.case in (*names, EVERY) else replace(budget, case=None)

    race = exercise.race_case if exercise.race_case in names else None
    return replace(
        exercise,
        cases=chosen,
        budgets=tuple(map(moved, exercise.budgets)),
        race_case=race,
        rtol=exercise.rtol * tolerance,
        atol=exercise.atol * tolerance,
    )


def _parts(
    exercise: Exercise, question: Question, trace: Trace, seeds: dict[str, int], job: ReplayJob
) -> tuple[Part, ...]:
    if why := why_not(exercise, question, trace, job):
        return checking.no_points(exercise, "", (Detail(why),))
    reference = registry.reference(exercise.name)
    contents = Contents(seeds)
    with contents.in_use():
        if exercise.evidence == "answered cases":
            return checking.examine(exercise, replayed_answers(exercise, question, trace), reference)
        if exercise.evidence == "tensor graph":
            return replayed_graphs(exercise, question, trace, reference)
        if exercise.evidence == "artefact":
            return checking.examine(exercise, replayed_artefacts(exercise, question, trace), reference)
        if exercise.evidence in ("communication", "dialogue"):
            return judged_live(exercise, question, job, reference)
        fn = Replayed(exercise, question, trace, contents)
        try:
            parts = checking.examine(exercise, fn, reference)
            if parts[0].state == "pass" and (why := undecided(exercise, fn, contents, reference)):
                return checking.no_points(exercise, "", (Detail(why),))
        except Refused as error:
            return checking.no_points(exercise, "", (Detail(str(error)),))
    return parts


def why_not(exercise: Exercise, question: Question, trace: Trace, job: ReplayJob) -> str:
    """Why there is nothing to examine; empty if there is."""
    end = job.end
    recorded: dict[str, dict[str, Any]] = {
        "launch trace": trace.cases,
        "answered cases": trace.answers,
        "tensor graph": trace.graphs,
        "artefact": trace.artefacts,
        "communication": {question.exercise: _fates(question, job)},
        "dialogue": {question.exercise: _fates(question, job)},
    }[exercise.evidence]  # type: ignore[assignment]
    missing = [c.name for c in exercise.cases if c.name not in recorded.get(question.exercise, {})]
    failure = trace.failures.get(question.exercise)
    for outcome in _fates(question, job).values():
        if trouble := outcome.trouble:  # cases after it were not tried
            missing = []
            if failure is None and trouble.error in ("missing", "NotImplementedError", "NameError"):
                failure = Failure(trouble.error, f"{trouble.error}: {trouble.text}")
    if failure is not None and failure.kind == "missing":
        return _no_function(question.function, trace, job)
    if failure is not None and failure.kind == "NotImplementedError":
        return texts.STUB
    if failure is not None and failure.kind == "NameError":
        return texts.NAME_OUTSIDE.format(error=failure.error)
    if failure is not None:
        return failure.error
    if missing and not trace.done:
        end = end or texts.ENDED_ITSELF
        return end if trace.last == question.exercise else texts.NOT_REACHED.format(why=end, where=trace.last)
    return texts.NO_RECORD.format(case=missing[0]) if missing else ""


def _no_function(name: str, trace: Trace, job: ReplayJob) -> str:
    """Why there is no function of that name: the cell failed that should define it, or else another one."""
    failed = {c: cause for c, cause in trace.cell_failures.items() if cause.kind != "NotImplementedError"}
    binds = re.compile(rf"\b(?:def|class)\s+{re.escape(name)}\b|\b{re.escape(name)}\s*=")
    for cell in sorted(failed, key=lambda cell: not binds.search(job.sources.get(cell, ""))):
        return texts.NO_FUNCTION_AFTER.format(function=name, cell=cell, error=failed[cell].error)
    return texts.NO_FUNCTION.format(function=name)


def _fates(question: Question, job: ReplayJob) -> dict[str, Any]:
    """How an exercise that was judged live fared, by case; nothing for another."""
    return {case: outcome for (name, case), outcome in job.outcomes.items() if name == question.exercise}


class Contents:
    """Takes the place of the public contents while the judge looks: other seeds, and a choice of poison."""

    def __init__(self, seeds: dict[str, int]):
        self.seeds = seeds
        self.pattern = cases.POISON[0]
        self.case = ""

    @contextmanager
    def in_use(self) -> Iterator[None]:
        arguments, questions = cases.arguments, cases.questions

        def fresh(exercise: Exercise, case: Case, *_: Any) -> tuple[cases.Argument, ...]:
            self.case = case.name
            return arguments(exercise, case, self.seeds[case.name], self.pattern)

        def asked(exercise: Exercise, case: Case, *_: Any) -> list[tuple]:
            return questions(exercise, case, self.seeds[case.name])

        with mock.patch.object(cases, "arguments", fresh), mock.patch.object(cases, "questions", asked):
            yield


class Replayed:
    """Launches what was recorded, with the arrays that it is called with in the place of the handles."""

    def __init__(self, exercise: Exercise, question: Question, trace: Trace, contents: Contents):
        self.trace, self.contents = trace, contents
        self.records = trace.cases[question.exercise]
        self.shape: tuple[Any, ...] | None = None

        def stand_in() -> None:
            """Gives messages the learner's name of the function."""

        stand_in.__name__ = self.__name__ = question.function
        if exercise.shape is not None:
            self.py_func = stand_in

    def __getitem__(self, configuration: tuple[Any, ...]) -> Replayed:
        self.shape = configuration
        return self

    def __call__(self, *values: Any) -> None:
        try:
            self._run(values)
        except (Message, simt.SimulationError):
            raise
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(frame.filename).name}, line {frame.lineno}"
            raise Broken(f"{type(error).__name__}: {error} ({where})") from error

    def _run(self, values: tuple[Any, ...]) -> None:
        record, case = self.records[self.contents.case], texts.clean(self.contents.case)
        device = devices.current()
        allocations = [
            device.memory.find(v.__cuda_array_interface__["data"][0]) or device.allocate(0)
            for v in values
            if hasattr(v, "__cuda_array_interface__")
        ]
        if record.buffers[: len(allocations)] != tuple(a.nbytes for a in allocations):
            raise Refused(texts.OTHER_BUFFERS.format(case=case))
        if record.uploaded > MOST_UPLOADED:
            raise Refused(texts.TOO_MANY_UPLOADS.format(size=record.uploaded, case=case, limit=MOST_UPLOADED))
        if self.shape is not None:
            grid, block, _, shared = self.shape
            check_shape((grid, block, shared), record, case)
        device.memory.modules.clear()  # no variable of a module outlives a run
        scratch = [device.allocate(nbytes) for nbytes in record.buffers[len(allocations) :]]
        for each in scratch:
            each.data[:] = self.contents.pattern
        allocations += scratch
        try:
            for event in record.events:
                if isinstance(event, RecordedLaunch):
                    self._launch(device, event, allocations)
                else:
                    fill(allocations[event.buffer].data, event)
        finally:
            for each in scratch:
                device.free(each)

    def _launch(
        self, device: devices.SimulatedDevice, launch: RecordedLaunch, allocations: list[simt.Allocation]
    ) -> None:
        kernel = self.trace.kernels[launch.kernel]
        arguments = bytearray(launch.arguments)
        for at, buffer, offset in launch.pointers:
            arguments[at : at + 8] = (allocations[buffer].address + offset).to_bytes(8, "little")
        labels = tuple(
            simt.ArrayLabel(
                x.name, allocations[x.buffer].address + x.offset, x.shape, x.strides, x.dtype, x.itemsize
            )
            for x in launch.labels
        )
        device.launch(
            compiled(kernel, device),
            launch.grid,
            launch.block,
            bytes(arguments),
            shared_bytes=launch.shared_bytes,
            pointers=tuple(at for at, _, _ in launch.pointers),
            arrays=labels,
        )


def check_shape(asked: tuple[Any, Any, int], record: CaseTrace, case: str) -> None:
    """One launch in the shape that the exercise asks for: (grid, block, bytes of dynamic shared memory).

    Raises Refused.
    """
    grid, block, shared = asked
    wanted = (*map(_three, (grid, block)), shared)
    for launch in record.launches:
        if (launch.grid, launch.block, launch.shared_bytes) != wanted or len(record.events) > 1:
            raise Refused(texts.OTHER_SHAPE.format(case=case, grid=launch.grid, block=launch.block))


def fill(target: np.ndarray, upload: Upload) -> None:
    """Write what the host wrote."""
    target[:] = upload.fill if upload.fill is not None else np.frombuffer(upload.data, np.uint8)


def compiled(kernel: Kernel, device: devices.SimulatedDevice) -> CompiledKernel:
    """The kernel for the device, after the judge's rules on it."""
    if kernel.cc != device.cc:
        name = texts.clean(kernel.name, 60)
        raise Refused(texts.OTHER_GPU.format(kernel=name, cc="{}.{}".format(*kernel.cc), gpu=device.gpu))
    size = constant_bytes(device, kernel)
    if size > MOST_CONSTANT:
        name = texts.clean(kernel.name, 60)
        raise Refused(texts.TOO_MANY_CONSTANTS.format(kernel=name, size=size, limit=MOST_CONSTANT))
    return CompiledKernel(
        texts.clean(kernel.name, 60),
        kernel.entry,
        kernel.ptx,
        kernel.cc,
        texts.clean(kernel.compiler, 100),
        kernel.max_registers,
    )


def constant_bytes(device: devices.SimulatedDevice, kernel: Kernel) -> int:
    """Bytes of data that the PTX brings along."""
    plain = CompiledKernel(kernel.name, kernel.entry, kernel.ptx, kernel.cc, "", kernel.max_registers)
    variables = device.program(plain).module.variables.values()
    return sum(len(v.initial.rstrip(b"\0")) for v in variables if v.initial)


def _three(size: Any) -> tuple[int, int, int]:
    items = tuple(size) if isinstance(size, tuple | list) else (size,)
    x, y, z = (*(int(n) for n in items), 1, 1)[:3]
    return x, y, z


def undecided(exercise: Exercise, fn: Replayed, contents: Contents, reference: Callable[..., Any]) -> str:
    """A second replay over other garbage must be right too; says where it is not."""
    contents.pattern = cases.POISON[1]
    with run.reference_device():
        for case in exercise.cases:
            outcome = run.run(exercise, case, fn, cases.arguments(exercise, case))
            if outcome.trouble:
                return outcome.trouble[0].text
            wrong = traces.first_mismatch(exercise, case, outcome, reference)
            if wrong is not None:
                index = ", ".join(map(str, wrong.first))
                got = compare.value_words(wrong.got[wrong.first])
                return texts.UNDECIDED.format(case=case.name, array=wrong.array, index=index, got=got)
    return ""


def replayed_answers(exercise: Exercise, question: Question, trace: Trace) -> Callable[..., Any]:
    """A function that gives the recorded answers, one after the other."""
    recorded = trace.answers[question.exercise]
    return _one_after_the_other(
        question, [answer for case in exercise.cases for answer in recorded[case.name]]
    )


def replayed_artefacts(exercise: Exercise, question: Question, trace: Trace) -> Callable[..., Any]:
    """A function that gives the recorded artefacts, one a case."""
    recorded = trace.artefacts[question.exercise]
    return _one_after_the_other(question, [recorded[case.name] for case in exercise.cases])


def _one_after_the_other(question: Question, results: list[Any]) -> Callable[..., Any]:
    """A function of the learner's name that returns these results."""
    left = iter(results)

    def replayed(*arguments: Any) -> Any:
        return next(left, None)

    replayed.__name__ = question.function
    return replayed


def replayed_graphs(
    exercise: Exercise, question: Question, trace: Trace, reference: Callable[..., Any]
) -> tuple[Part, ...]:
    """The parts of a verdict on recorded tensor graphs."""
    recorded = trace.graphs[question.exercise]

    def stand_in() -> None:
        """Gives messages the learner's name of the function."""

    stand_in.__name__ = question.function
    try:
        return programs.examine(exercise, stand_in, reference, lambda case, made: recorded[case.name])
    except Exception as error:
        raise Broken(f"{type(error).__name__}: {error}") from error


def judged_live(
    exercise: Exercise, question: Question, job: ReplayJob, reference: Callable[..., Any]
) -> tuple[Part, ...]:
    """The parts of a verdict on what several ranks have computed, or a dialogue has found, already."""

    def stand_in() -> None:
        """Gives messages the learner's name of the function."""

    stand_in.__name__ = question.function
    found = _fates(question, job)
    if exercise.evidence == "dialogue":
        return dialogues.examine(exercise, stand_in, reference, lambda case: found[case.name])
    return communication.examine(exercise, stand_in, reference, lambda case, made: found[case.name])


def _line(part: Part) -> Line:
    """A part of a check's verdict as a line of ours."""
    details = "\n".join(f"line {d.line}: {d.text}" if d.line else d.text for d in part.details)
    short = ""
    if part.points < part.of and part.state != "wait":
        if part.metric:
            amounts = [messages.number_of(part.metric, v or 0.0) for v in (part.measured, part.budget)]
            short = texts.INSTEAD.format(label=part.label, measured=amounts[0], limit=amounts[1])
        else:
            short = part.details[0].text.splitlines()[0] if part.details else part.summary
    summary = " · ".join(re.split(r" {2,}", part.summary))
    return Line(part.label, part.points + 0.0, part.of, summary, details, short)  # + 0.0: no minus zero
