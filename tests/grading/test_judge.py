"""A replay that is stopped or dies costs one exercise its verdict, never another one."""

from __future__ import annotations

import pytest

from gpulab.checks import find
from gpulab.checks.spec import Case
from grading.core import judge as judging
from grading.core.judge import Judge, exercise_step, job_bytes, own_cases
from grading.core.notebooks import Question
from grading.core.replay import ReplayJob
from grading.core.sandbox import Limits, record

SLOW = """
from gpulab import cuda
@cuda.jit
def copy(a, b):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        b[i] = a[i]
"""
CASES = (Case("2,048", {"n": 2048}),)


@pytest.fixture(scope="module")
def job() -> ReplayJob:
    """One right answer, asked for twice."""
    asked = tuple(Question(name, f"memory.copy@{name}", "copy", 4) for name in ("first", "second"))
    steps = [{"cell": "c0", "source": SLOW}]
    steps += [exercise_step(q, find("memory.copy"), CASES, [1]) for q in asked]
    content = record(job_bytes({"patience": 20, "steps": steps}), Limits(seconds=60), unsafe=True).content
    names = [q.exercise for q in asked]
    seeds = {(name, "2,048"): 1 for name in names}
    return ReplayJob(content, "", asked, dict.fromkeys(names, CASES), seeds, {}, {})


def test_a_child_that_lives_gives_all_verdicts(job: ReplayJob) -> None:
    found = Judge(b"", Limits())._replay(job)
    assert [v.points for v in found] == [4, 4]


def test_a_replay_beyond_its_time_has_no_verdict(job: ReplayJob) -> None:
    found = Judge(b"", Limits(seconds=0.01))._replay(job)
    assert all("the replay was stopped after" in v.ungraded and v.points == 0 for v in found)


def test_a_replay_beyond_its_memory_has_no_verdict_and_a_reason(job: ReplayJob) -> None:
    found = Judge(b"", Limits(replay_memory=64 << 20))._replay(job)
    assert all("ended without a verdict" in v.ungraded and v.points == 0 for v in found)


def test_a_child_that_dies_costs_only_the_exercise_that_killed_it(
    job: ReplayJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = Judge(b"", Limits())
    real = judge._child

    def mortal(job: ReplayJob) -> tuple[dict, str]:
        if job.questions[0].cell == "first":
            return {}, "the replay ended without a verdict (SIGSEGV)"
        return real(job)

    monkeypatch.setattr(judge, "_child", mortal)
    first, second = judge._replay(job)
    assert "SIGSEGV" in first.ungraded and first.points == 0
    assert second.points == 4


def test_the_judge_has_sizes_of_its_own_for_every_exercise_and_none_twice() -> None:
    judging.own_cases.cache_clear()
    for name, cases in own_cases().items():
        exercise = find(name)
        names = [case.name for case in cases]
        assert len(set(names)) == len(names), name
        asked_by_seed = exercise.evidence in ("answered cases", "dialogue")  # their questions differ by seed
        assert asked_by_seed or cases != exercise.cases, name
