"""A reference that is handed in as an answer earns nothing: in the sandbox there is none."""

from __future__ import annotations

from typing import Any

import pytest

from gpulab.exercises import registry
from gpulab.exercises.spec import Exercise
from grading import sandbox
from grading.judge import exercise_step, job_bytes, live
from grading.notebooks import Question
from grading.replay import ReplayJob, verdicts
from grading.sandbox import Limits
from grading.traces import read_trace

LIMITS = Limits(seconds=200, patience=20)
LIVE = ("communication", "dialogue")


def question(exercise: Exercise) -> Question:
    return Question(exercise.name, exercise.name, "answer", exercise.points)


def steps(exercises: list[Exercise]) -> list[dict[str, Any]]:
    """Cells that hand in the reference of each exercise, each followed by its exercise at one case."""
    found: list[dict[str, Any]] = []
    for exercise in exercises:
        source = f"from gpulab.exercises import registry\nanswer = registry.reference({exercise.name!r})"
        found.append({"cell": exercise.name, "source": source})
        found.append(exercise_step(question(exercise), exercise, exercise.cases[:1], [1]))
    return found


def test_no_reference_is_in_the_sandbox(needs_sandbox: None) -> None:
    exercises = [e for e in registry.exercises() if e.evidence not in LIVE]
    assert len(exercises) > 150
    job = job_bytes({"patience": LIMITS.patience, "steps": steps(exercises)})
    outcome = sandbox.record(job, LIMITS)
    trace = read_trace(outcome.content)
    assert outcome.end == "done" and trace.done
    assert not (trace.cases or trace.answers or trace.graphs or trace.artefacts)
    assert set(trace.cell_failures) == {e.name for e in exercises}
    assert all("not installed here" in failure.error for failure in trace.cell_failures.values())

    asked = tuple(map(question, exercises))
    replayed = ReplayJob(
        outcome.content, "", asked, {e.name: e.cases[:1] for e in exercises},
        {(e.name, e.cases[0].name): 1 for e in exercises}, {}, {},
    )  # fmt: skip
    assert {v.exercise: v.points for v in verdicts(replayed)} == {e.name: 0 for e in exercises}


def test_the_same_job_would_answer_where_they_are_installed() -> None:
    plain = [e for e in registry.of_lab("00") if e.evidence == "answered cases"]
    job = job_bytes({"patience": LIMITS.patience, "steps": steps(plain)})
    trace = read_trace(sandbox.record(job, LIMITS, unsafe=True).content)
    assert set(trace.answers) == {e.name for e in plain} and not trace.cell_failures


@pytest.mark.parametrize("evidence", LIVE)
def test_nor_is_one_where_the_judge_talks_with_the_sandbox(needs_sandbox: None, evidence: str) -> None:
    exercises = [e for e in registry.exercises() if e.evidence == evidence]
    assert len(exercises) > 5
    asked = tuple(map(question, exercises))
    chosen = {e.name: e.cases[:1] for e in exercises}
    seeds = {(e.name, e.cases[0].name): 1 for e in exercises}
    job = steps(exercises)
    found = live(job, asked, chosen, seeds, LIMITS)
    outcome = sandbox.record(job_bytes({"patience": LIMITS.patience, "steps": job}), LIMITS)
    judged = verdicts(ReplayJob(outcome.content, "", asked, chosen, seeds, {}, {}, found))
    assert {v.exercise: v.points for v in judged} == {e.name: 0 for e in exercises}
    assert all("not installed here" in v.reason or "not defined" in v.reason for v in judged)
