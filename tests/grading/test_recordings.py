"""A crash in one cell or exercise costs what it defines or answers, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from gpulab.checks import find
from gpulab.checks.spec import Case
from grading.core import recordings, sandbox
from grading.core.clock import Clock
from grading.core.judge import exercise_step, job_bytes
from grading.core.notebooks import Question
from grading.core.recordings import Recording
from grading.core.replay import ReplayJob
from grading.core.replays import Replays
from grading.core.sandbox import Limits, Outcome
from grading.core.verdicts import ExerciseVerdict

GOOD = "def good(addresses, size): return len({b // 32 for a in addresses for b in range(a, a + size)})"
CRASH = "import ctypes; ctypes.string_at(0)"
LEAVE = "import os; os._exit(0)"
CASE = Case("judge", {"kind": "any"})
LIMITS = Limits(seconds=200)


def asked(functions: dict[str, str]) -> tuple[Question, ...]:
    """A question for each name of a function."""
    return tuple(
        Question(name, f"memory.sectors@{name}", function, 3) for name, function in functions.items()
    )


def steps_of(parts: list[str], questions: tuple[Question, ...]) -> list[dict[str, Any]]:
    """A cell for each source, an exercise for each name."""
    by_name, exercise = {q.cell: q for q in questions}, find("memory.sectors")
    return [
        exercise_step(by_name[part], exercise, exercise.cases[:1], [1])
        if part in by_name
        else {"cell": f"c{number}", "source": part}
        for number, part in enumerate(parts)
    ]


def judged(parts: list[str], functions: dict[str, str]) -> tuple[dict[str, ExerciseVerdict], Recording]:
    questions = asked(functions)
    steps = steps_of(parts, questions)
    found = recordings.whole(
        {"patience": 20, "steps": steps},
        LIMITS,
        lambda job, limits: sandbox.record(job_bytes(job), limits, unsafe=True),
    )
    cases = find("memory.sectors").cases[:1]
    names = [q.exercise for q in questions]
    seeds = {(name, cases[0].name): 1 for name in names}
    sources = {step["cell"]: step["source"] for step in steps if "cell" in step}
    job = ReplayJob(found.outcome.content, "", questions, dict.fromkeys(names, cases), seeds, sources, {})
    return {v.cell: v for v in Replays(LIMITS).verdicts(job)}, found


def test_what_comes_after_a_crash_is_judged_and_the_crash_is_for_a_person() -> None:
    """A SIGSEGV took the seven exercises after it with it once, as "graded"."""
    crashes = f"def dies(addresses, size):\n    {CRASH}"
    parts = [GOOD, "before", f"def lost(addresses, size): return 4\n{CRASH}", "lost", crashes, "dies"]
    parts += [f"def leaves(addresses, size):\n    {LEAVE}", "leaves", LEAVE, "after"]
    functions = {name: name for name in ("lost", "dies", "leaves")} | {"before": "good", "after": "good"}
    found, recording = judged(parts, functions)
    assert {name: verdict.points for name, verdict in found.items()} == {
        "before": 3, "lost": 0, "dies": 0, "leaves": 0, "after": 3,
    }  # fmt: skip
    assert recording.crashed == {"c2", "c8"} and recording.outcome.end == "done"
    assert "because the cell 'c2' failed: the process ended (SIGSEGV)" in found["lost"].reason
    assert "SIGSEGV" in found["dies"].reason and "SIGSEGV" in found["dies"].doubt
    assert "ended before its work was done" in found["leaves"].reason
    assert found["lost"].doubt and not found["after"].doubt


class Counted:
    """A sandbox in which every recording ends at the same line."""

    def __init__(self, content: bytes) -> None:
        self.content, self.jobs = content, list[dict[str, Any]]()

    def __call__(self, job: dict[str, Any], limits: Limits) -> Outcome:
        self.jobs.append(job)
        return Outcome(self.content, "died", "SIGSEGV")


CELLS = {"patience": 1, "steps": [{"cell": f"c{n}", "source": ""} for n in range(20)]}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"line":"at","cell":"another"}\n',
        b'{"line":"at","cell":"c1"',
        b'{"line":"at",' + b"[" * 100_000 + b"\n",
        b'{"line":"at","cell":"c1","source":""}\n',
    ],
)
def test_a_record_that_names_no_step_of_the_job_is_not_begun_anew(content: bytes) -> None:
    counted = Counted(content)
    found = recordings.whole(CELLS, LIMITS, counted)
    assert len(counted.jobs) == 1 and not found.crashed and found.outcome.end == "died"


def test_a_submission_that_crashes_without_end_is_begun_anew_a_few_times() -> None:
    counted = Counted(b"".join(b'{"line":"at","cell":"c%d"}\n' % n for n in range(19)))
    counted.content += b'{"line":"at","cell":"c0"}\n'
    found = recordings.whole(CELLS, LIMITS, counted)
    assert len(counted.jobs) == 2  # then that cell is in no job any more
    assert found.crashed == {"c0"} and len(counted.jobs[1]["steps"]) == 19


def test_a_submission_whose_time_is_over_is_not_begun_anew() -> None:
    counted = Counted(b'{"line":"at","cell":"c3"}\n')
    recordings.whole(CELLS, Limits(seconds=0), counted)
    assert len(counted.jobs) == 1


def test_waiting_for_cells_has_seconds_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    clock = Clock(110.0, 15.0)
    with clock.waiting() as seconds:
        assert seconds == 25
        now += 12
    assert clock.left == 10
    with clock.waiting():
        now += 5
    assert clock.left == 8  # three of the five were left
