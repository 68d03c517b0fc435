"""A replay that is stopped or dies costs one exercise its verdict, never another one."""

from __future__ import annotations

from typing import Any

import pytest

from gpulab.checks import find
from gpulab.checks.spec import Case
from grading.core import judge as judging
from grading.core.judge import exercise_step, job_bytes, own_cases
from grading.core.notebooks import Question
from grading.core.replay import ReplayJob
from grading.core.replays import Replays, Said
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
    found = Replays(Limits()).verdicts(job)
    assert [v.points for v in found] == [4, 4]


def test_a_replay_beyond_its_time_has_no_verdict(job: ReplayJob) -> None:
    found = Replays(Limits(seconds=0.01)).verdicts(job)
    assert all("the replay was stopped after" in v.ungraded and v.points == 0 for v in found)


def test_a_replay_beyond_its_memory_has_no_verdict_and_a_reason(job: ReplayJob) -> None:
    found = Replays(Limits(replay_memory=64 << 20)).verdicts(job)
    assert all("ended without a verdict" in v.ungraded and v.points == 0 for v in found)


def test_a_child_that_dies_costs_only_the_exercise_that_killed_it(
    job: ReplayJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    replays = Replays(Limits())
    real = replays._child

    def mortal(job: ReplayJob, *limits: Any) -> Said:
        if job.questions[0].cell == "first":
            return Said(end="died", how="the replay ended without a verdict (SIGSEGV)")
        return real(job, *limits)

    monkeypatch.setattr(replays, "_child", mortal)
    first, second = replays.verdicts(job)
    assert "SIGSEGV" in first.ungraded and first.points == 0
    assert second.points == 4


# It ends after 200,000 instructions of each thread, which take the simulator a minute, warp by warp.
LONG = """
@cuda.jit
def slow(a, b):
    total = a[0]
    for i in range(12_000):
        total = total * a[0] + b[i % a.size]
    b[cuda.grid(1) % a.size] = total
"""


def recorded(functions: list[str]) -> ReplayJob:
    """A question for each function, all asked in one submission."""
    asked = tuple(Question(f"q{i}", f"memory.copy@{i}", function, 4) for i, function in enumerate(functions))
    steps: list[dict[str, Any]] = [{"cell": "c0", "source": SLOW}, {"cell": "c1", "source": LONG}]
    steps += [exercise_step(q, find("memory.copy"), CASES, [1]) for q in asked]
    content = record(job_bytes({"patience": 20, "steps": steps}), Limits(seconds=60), unsafe=True).content
    names = [q.exercise for q in asked]
    seeds = {(name, "2,048"): 1 for name in names}
    return ReplayJob(content, "", asked, dict.fromkeys(names, CASES), seeds, {}, {})


def processor_time(
    job: ReplayJob, limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, list[float]]:
    """The verdicts, and the seconds of processor time of each child, by their own limits and reports."""
    replays, spent = Replays(limits), list[float]()
    real = replays._child

    def noted(*arguments: Any) -> Said:
        said = real(*arguments)
        spent.append(said.spent)
        return said

    monkeypatch.setattr(replays, "_child", noted)
    return replays.verdicts(job), spent


def test_slow_kernels_keep_to_one_limit_and_cost_no_other_exercise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit was one for each of them once."""
    job = recorded(["slow", "copy", "slow", "slow", "copy"])
    limits = Limits(seconds=20, patience=3)
    found, spent = processor_time(job, limits, monkeypatch)
    assert [v.points for v in found] == [0, 4, 0, 0, 4]
    assert ["of processor time" in v.ungraded for v in found] == [not v.points for v in found], found
    assert sum(spent) <= limits.seconds + 2  # the start of a child is nobody's


def test_an_exercise_that_needs_more_than_its_share_gets_what_others_left(
    job: ReplayJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, spent = processor_time(job, Limits(seconds=60, patience=0.01), monkeypatch)
    assert [v.points for v in found] == [4, 4]
    assert len(spent) >= 3 and sum(spent) < 60


def test_the_replay_of_a_submission_whose_time_is_over_ends_at_once(job: ReplayJob) -> None:
    found = Replays(Limits(seconds=0)).verdicts(job)
    assert [v.points for v in found] == [0, 0]


def test_the_judge_has_sizes_of_its_own_for_every_exercise_and_none_twice() -> None:
    judging.own_cases.cache_clear()
    for name, cases in own_cases().items():
        exercise = find(name)
        names = [case.name for case in cases]
        assert len(set(names)) == len(names), name
        asked_by_seed = exercise.evidence.kind in (
            "answered cases",
            "dialogue",
        )  # their questions differ by seed
        assert asked_by_seed or cases != exercise.cases, name
