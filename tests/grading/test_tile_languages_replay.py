"""CuTe DSL and cuTile in a submission: compiled in the sandbox, judged by their PTX on new contents."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("nvidia_cutlass_dsl", reason="CuTe DSL is not installed")
pytest.importorskip("cuda.tile", reason="cuTile is not installed")

from gpulab.checks import registry
from gpulab.checks.evidence import LaunchTrace
from gpulab.checks.spec import Array, Case, Exercise
from grading.core import sandbox
from grading.core.judge import exercise_step, job_bytes
from grading.core.notebooks import Question
from grading.core.replay import ReplayJob, verdicts
from grading.core.sandbox import Limits
from grading.core.verdicts import ExerciseVerdict

CASES = (Case("100", {"n": 100}), Case("1025", {"n": 1025}))
EXERCISE = Exercise(
    name="toy.twice_in_tiles",
    lab="99",
    correct_points=1,
    evidence=LaunchTrace(
        arguments=lambda sizes: (Array("x", (int(sizes["n"]),)), Array("y", (int(sizes["n"]),), role="out")),
        face="cupy",
    ),
    cases=CASES,
)
TILE = """
import cuda.tile as ct

@ct.kernel
def twice(x, y, N: ct.Constant[int]):
    tile = ct.load(x, index=(ct.bid(0),), shape=(N,))
    ct.store(y, index=(ct.bid(0),), tile=tile * %s)

def answer(x, y):
    ct.launch(0, (-(-x.size // 128),), twice, (x, y, 128))
"""
CUTE = """
import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import from_dlpack

@cute.kernel
def twice(x: cute.Tensor, y: cute.Tensor):
    i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
    if i < cute.size(x):
        y[i] = x[i] * %s

@cute.jit
def launch(x: cute.Tensor, y: cute.Tensor):
    twice(x, y).launch(grid=((cute.size(x) + 127) // 128, 1, 1), block=(128, 1, 1))

def answer(x, y):
    launch(from_dlpack(x), from_dlpack(y))
"""
ANSWERS = {
    "cuTile": TILE % "2",
    "cuTile, wrong": TILE % "3",
    "CuTe DSL": CUTE % "2.0",
    "CuTe DSL, wrong": CUTE % "3.0",
}


@pytest.fixture(autouse=True, scope="module")
def exercises() -> Iterator[None]:
    registry.add(EXERCISE, lambda inputs, sizes: {"y": 2 * inputs["x"]})
    yield
    registry.remove(EXERCISE.name)


def _question(name: str) -> Question:
    return Question(name, f"{EXERCISE.name}@{name}", "answer", 1)


def judged(unsafe: bool) -> dict[str, ExerciseVerdict]:
    steps = []
    for name, source in ANSWERS.items():
        steps.append({"cell": name, "source": source})
        steps.append(exercise_step(_question(name), EXERCISE, CASES, [1, 1]))
    content = sandbox.record(
        job_bytes({"patience": 60, "steps": steps}), Limits(seconds=200), unsafe=unsafe
    ).content
    questions = tuple(map(_question, ANSWERS))
    job = ReplayJob(
        content,
        "",
        questions,
        {q.exercise: CASES for q in questions},
        {(q.exercise, case.name): 77 for q in questions for case in CASES},
        dict(ANSWERS),
        {},
    )
    return dict(zip(ANSWERS, verdicts(job), strict=True))


EXPECTED = {name: "wrong" not in name for name in ANSWERS}


def test_right_answers_pass_and_wrong_ones_fail_on_contents_that_were_not_there() -> None:
    assert {name: verdict.passed for name, verdict in judged(unsafe=True).items()} == EXPECTED


def test_the_same_comes_out_of_the_sandbox(needs_sandbox: None) -> None:
    assert {name: verdict.passed for name, verdict in judged(unsafe=False).items()} == EXPECTED
