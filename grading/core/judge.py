"""A grafted notebook → a verdict: record in the sandbox, replay in a limited child."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

from nbformat import NotebookNode

from gpulab.checks import registry
from gpulab.checks.spec import Case, Exercise
from gpulab.simulator.compile import compiler_version
from grading.core import dialogues, linking, ranks, recordings, sandbox, texts
from grading.core.course import ROOT
from grading.core.environment import seed
from grading.core.errors import Unjudged
from grading.core.graft import Graft, cells_to_run, imports
from grading.core.notebooks import Question, is_test
from grading.core.ranks import Asked
from grading.core.replay import Live, ReplayJob, exercise_of
from grading.core.replays import Replays, Stopped
from grading.core.sandbox import Limits, Outcome
from grading.core.verdicts import NotebookVerdict

# How exercises of a live kind of evidence are asked, while the learner's code runs.
LIVE: dict[str, Callable[..., Any]] = {"communication": ranks.outcomes, "dialogue": dialogues.outcomes}


@cache
def own_cases() -> dict[str, tuple[Case, ...]]:
    """The judge's own cases by exercise: all CASES of grading/cases/."""
    names = sorted(p.stem for p in (ROOT / "grading" / "cases").glob("lab_*.py"))
    modules = [import_module(f"grading.cases.{name}") for name in names]
    return {exercise: tuple(chosen) for m in modules for exercise, chosen in m.CASES.items()}


def judge_cases(exercise: Exercise) -> tuple[Case, ...]:
    """Where the judge looks: at cases of its own, or the public ones (on other contents, in any case).

    Public cases that show what others cannot come first. A judge is never weaker than the check.
    """
    own = own_cases().get(exercise.name, exercise.cases)
    names = {case.name for case in own}
    return (*(case for case in exercise.evidence.needed_cases(exercise) if case.name not in names), *own)


class Judge:
    """Judges notebooks of one course. `verdict` may be called from several threads."""

    def __init__(self, secret: bytes, limits: Limits, *, unsafe: bool = False):
        self.secret, self.limits, self.unsafe = secret, limits, unsafe
        self.replays = Replays(limits)
        self._stopped = False

    def verdict(self, graft: Graft, questions: tuple[Question, ...], key: str) -> NotebookVerdict:
        """The verdict on one notebook, whatever is in it.

        Raises SandboxError where there is no sandbox, Unjudged where it failed twice.
        """
        began = time.monotonic()
        # One clock for all that the learner's code does.
        until = began + self.limits.seconds + self.limits.cells
        chosen = {q.exercise: judge_cases(registry.find(q.exercise)) for q in questions}
        seeds = {
            (exercise, case.name): seed(self.secret, graft.digest, exercise, case.name)
            for exercise, cases in chosen.items()
            for case in cases
        }
        job = recording_job(graft, questions, chosen, seeds, self.limits.patience)
        job["cells"] = self.limits.cells
        self.replays.warm(warm_modules(questions))  # before any child is started
        modules = imports(graft.notebook)
        recording = recordings.whole(
            job,
            self.recording(questions),
            lambda job, limits: self.record(job_bytes(job), modules, limits),
        )
        outcome = recording.outcome
        together = live(
            recording.survived(job["steps"]),
            questions,
            chosen,
            seeds,
            self.limits,
            unsafe=self.unsafe,
            stopped=lambda: self._stopped,
            until=until,
        )
        recorded = time.monotonic()
        linked = self.linked(outcome.content)
        sources = {step["cell"]: step["source"] for step in job["steps"] if "source" in step}
        replayed = self.replays.verdicts(
            ReplayJob(
                outcome.content,
                self.ended(outcome, self.recording(questions)),
                questions,
                chosen,
                seeds,
                sources,
                _notes(graft, graft.notes, questions),
                outcomes=together,
                doubts=_notes(graft, graft.doubts, questions),
                linked=linked,
            )
        )
        return NotebookVerdict(
            key,
            graft.digest,
            replayed,
            compiler=compiler_version(),
            device=_simulated(questions),
            seconds={"record": round(recorded - began, 2), "replay": round(time.monotonic() - recorded, 2)},
        )

    def recording(self, questions: tuple[Question, ...]) -> Limits:
        """The limits of the recording: the cells' time and the rest, or half of the rest where something is
        judged live after it."""
        live_too = any(exercise_of(q.exercise).evidence.live for q in questions)
        seconds = self.limits.seconds / 2 if live_too else self.limits.seconds
        return replace(self.limits, seconds=seconds + self.limits.cells)

    def record(self, job: bytes, modules: Sequence[str] = (), limits: Limits | None = None) -> Outcome:
        """What the sandbox brought back; once more where it was killed from outside, or never came up.

        `modules` are those that the lab imports; `limits` are the judge's where there are no others.
        Raises Unjudged where that happened twice.
        """
        for _ in range(2):
            outcome = sandbox.record(job, limits or self.limits, unsafe=self.unsafe, imports=modules)
            if self._stopped:
                raise Stopped
            never = not outcome.content and outcome.how.startswith("bwrap:")
            if outcome.end != "killed" and not never:
                return outcome
        raise Unjudged(texts.NOT_RECORDED.format(how=texts.clean(outcome.how, 120)))

    def linked(self, content: bytes, cc: tuple[int, int] | None = None) -> bytes:
        """What the linker says of a record's kernels, or with `cc` their machine code, see `linking`.

        Raises Unjudged.
        """
        return linking.linked(content, self.limits.patience, self.record, cc)

    def ended(self, outcome: Outcome, limits: Limits | None = None) -> str:
        """Why a recording ended before its work was done; empty where it did not."""
        if outcome.end == "done":
            return ""
        if outcome.end == "stopped":
            return texts.STOPPED.format(seconds=(limits or self.limits).seconds)
        return texts.DIED.format(how=texts.clean(outcome.how, 120))

    def stop(self) -> None:
        """End every replay that is under way, and start no other."""
        self._stopped = True
        self.replays.stop()


def warm_modules(questions: Iterable[Question]) -> list[str]:
    """What the server of the replays imports before it starts; PyTorch only where a lab needs it."""
    with_torch = any(exercise_of(q.exercise).evidence.counted_with() for q in questions)
    return ["grading.core.warm", *(["grading.core.warm_torch"] if with_torch else [])]


def recording_job(
    graft: Graft,
    questions: tuple[Question, ...],
    chosen: dict[str, tuple[Case, ...]],
    seeds: dict[tuple[str, str], int],
    patience: float,
) -> dict[str, Any]:
    """What the recorder is to do: run the cells that answers need, record each exercise where it is asked."""
    asked = {q.cell: q for q in questions}
    steps: list[dict[str, Any]] = []
    for step in steps_of(graft.notebook):
        if "cell" in step:
            steps.append(step)
        elif question := asked.get(step["test"]):
            cases = chosen[question.exercise]
            numbers = [seeds[question.exercise, case.name] for case in cases]
            steps.append(exercise_step(question, registry.find(question.exercise), cases, numbers))
    return {"patience": patience, "steps": steps}


def live(
    steps: list[dict[str, Any]],
    questions: tuple[Question, ...],
    chosen: dict[str, tuple[Case, ...]],
    seeds: dict[tuple[str, str], int],
    limits: Limits,
    *,
    unsafe: bool = False,
    stopped: Callable[[], bool] = lambda: False,
    until: float | None = None,
) -> Live:
    """What is judged while the learner's code runs: exercises for several ranks, and dialogues.

    All of it ends at `until`, which is in `limits.seconds` where nothing is said.
    """
    until = time.monotonic() + limits.seconds if until is None else until
    found: dict[tuple[str, str], Any] = {}
    for kind, outcomes in LIVE.items():
        asked = asked_together(questions, chosen, seeds, kind)
        found |= outcomes(steps, asked, job_bytes, limits, until, unsafe=unsafe, stopped=stopped)
    return found


def asked_together(
    questions: Iterable[Question],
    chosen: dict[str, tuple[Case, ...]],
    seeds: dict[tuple[str, str], int],
    kind: str,
) -> list[Asked]:
    """The exercises of one kind of evidence among the questions."""
    found = []
    for question in questions:
        exercise = exercise_of(question.exercise)
        if exercise.evidence.kind == kind:
            cases = chosen[question.exercise]
            numbers = tuple(seeds[question.exercise, case.name] for case in cases)
            found.append(Asked(question.exercise, exercise, cases, numbers))
    return found


def steps_of(notebook: NotebookNode) -> Iterator[dict[str, Any]]:
    """The cells that answers need, ``{"cell", "source"}``, and the tests' places, ``{"test"}``, in order."""
    needed = {cell.id for cell in cells_to_run(notebook)}
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id", cell.id)
        if is_test(cell):
            yield {"test": name}
        elif cell.id in needed:
            # IPython drops empty lines at the top; so do we, for the same line numbers in messages.
            yield {"cell": name, "source": re.sub(r"\A(?:[ \t]*\n)+", "", cell.source)}


def exercise_step(
    question: Question, exercise: Exercise, cases: Iterable[Case], seeds: Iterable[int]
) -> dict[str, Any]:
    """Record the answer to one question at these cases."""
    evidence = exercise.evidence
    given = [evidence.step(exercise, case, number) for case, number in zip(cases, seeds, strict=True)]
    return {
        "exercise": question.exercise,
        "function": question.function,
        "evidence": evidence.kind,
        "cases": given,
    }


def job_bytes(job: dict[str, Any]) -> bytes:
    """A job as the recorder reads it; NumPy's numbers become Python's."""
    return json.dumps(job, default=lambda value: value.tolist()).encode()


def _simulated(questions: tuple[Question, ...]) -> str:
    """The GPUs that the exercises were judged on, in the order in which the notebook asks."""
    return " and ".join(dict.fromkeys(exercise_of(q.exercise).gpu for q in questions)) + " simulated"


def _notes(graft: Graft, by_cell: dict[str, str], questions: tuple[Question, ...]) -> dict[str, str]:
    """What is noted about the solution cells before each test cell, by exercise."""
    notes: dict[str, str] = {}
    asked = {q.cell: q for q in questions}
    before: list[str] = []
    for cell in graft.notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        if name in asked:
            notes[asked[name].exercise] = "; ".join(before)
            before = []
        elif name in by_cell:
            before.append(by_cell[name])
    return notes
