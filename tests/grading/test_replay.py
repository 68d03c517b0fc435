"""Replaying records on fresh contents: what is right stays right, and what only looked right does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpulab.checks import find, registry
from gpulab.checks.spec import Case
from grading.core import sandbox
from grading.core.judge import exercise_step, job_bytes, judge_cases
from grading.core.notebooks import Question
from grading.core.replay import ReplayJob, verdicts
from grading.core.sandbox import Limits
from grading.core.verdicts import ExerciseVerdict

GREETING = "import numpy as np\nfrom gpulab import cuda\n"
SEED = 12345

COPY = """
@cuda.jit
def copy(a, b):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        {body}
"""
KERNELS = {
    "right": "b[i] = a[i]",
    "needs garbage": "b[i] = a[i] if b[i] != b[i] else 0",
    "changes input": "b[i] = a[i]; a[i] = 0",
    "writes beyond": "b[i] = a[i]; b[i + a.size] = 1",
    "endless": "\n        while a[0] == a[0]:\n            b[0] = b[0]",
}
HOST = """
@cuda.jit
def step(rod, out):
    i = cuda.grid(1)
    if i < rod.size:
        left = rod[i - 1] if i > 0 else rod[i]
        out[i] = left

def diffuse(rod, out, steps):
    {body}
"""
HOSTS = {
    "print(rod.copy_to_host())": "reads `rod` on the host",
    "rod[0] = 1": "writes to the input `rod`",
    "step[8, 256](rod, out); out[0:4] = np.arange(4, dtype=np.float32)": "between launches",
    "t = cuda.to_device(np.arange(rod.size + 8192, dtype=np.float32)); step[64, 256](t, out)": "uploads",
    "raise ValueError('no idea')": "no idea",
    "pass": "launched no kernel",
    "helper(rod)": "define this name in the cell of the answer",
    "t = cuda.device_array_like(rod); t[:] = 0; step[64, 256](rod, t); step[64, 256](t, out)": "should be",
}
ANSWERS = {
    **{name: ("memory.copy", COPY.format(body=body)) for name, body in KERNELS.items()},
    **{body: ("basics.diffuse", HOST.format(body=body)) for body in HOSTS},
}


def question(exercise: str) -> Question:
    return Question("check", exercise, exercise.partition("@")[0].partition(".")[2], 0)


def last_case(exercise: str) -> tuple[Case, ...]:
    return judge_cases(find(exercise))[-1:]


@pytest.fixture(scope="module")
def recorded() -> bytes:
    """All answers, recorded one after the other (without a sandbox: these cells are ours)."""
    steps = []
    for number, (exercise, source) in enumerate(ANSWERS.values()):
        asked = question(f"{exercise}@{number}")
        steps.append({"cell": f"c{number}", "source": GREETING + source})
        steps.append(exercise_step(asked, find(exercise), last_case(exercise), [SEED]))
    return sandbox.record(
        job_bytes({"patience": 20, "steps": steps}), Limits(seconds=120), unsafe=True
    ).content


def replay(
    content: bytes, exercise: str, cases: tuple[Case, ...], sources: dict[str, str]
) -> ExerciseVerdict:
    """The verdict on a record, whatever is in it."""
    seeds = {(exercise, case.name): SEED for case in cases}
    job = ReplayJob(content, "", (question(exercise),), {exercise: cases}, seeds, sources, {})
    return next(iter(verdicts(job)))


def judged(recorded: bytes, name: str) -> ExerciseVerdict:
    exercise, source = ANSWERS[name]
    number = list(ANSWERS).index(name)
    return replay(recorded, f"{exercise}@{number}", last_case(exercise), {f"c{number}": GREETING + source})


def text(verdict: ExerciseVerdict) -> str:
    return "\n".join(f"{line.label}: {line.summary}\n{line.reason}" for line in verdict.lines)


def test_a_right_kernel_gets_all_points(recorded: bytes) -> None:
    assert judged(recorded, "right").passed


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("needs garbage", ["depends on what stood in memory before"]),
        ("changes input", ["changed", "`a`"]),
        ("writes beyond", ["OutOfBounds in kernel copy", "b[i + a.size] = 1"]),
        ("endless", ["No end"]),
    ],
)
def test_a_kernel_that_is_wrong_is_told_why(recorded: bytes, name: str, words: list[str]) -> None:
    found = judged(recorded, name)
    assert found.points == 0
    assert [w for w in words if w not in text(found)] == [], text(found)


@pytest.mark.parametrize(("body", "words"), HOSTS.items())
def test_host_code_that_breaks_a_rule_is_told_which(recorded: bytes, body: str, words: str) -> None:
    found = judged(recorded, body)
    assert found.points == 0
    assert words in text(found).replace("\n", " "), text(found)


# ---------------------------------------------------------------- forged records


def forged(recorded: bytes, change: Callable[[list[Any]], None]) -> ExerciseVerdict:
    """The verdict on the record of the right kernel after a change to its lines."""
    lines = [json.loads(line) for line in recorded.splitlines()]
    name = f"memory.copy@{list(ANSWERS).index('right')}"
    case = next(x for x in lines if x["line"] == "case" and x["exercise"] == name)
    used = {event["kernel"] for event in case["events"]}
    mine = [x for x in lines if x is case or (x["line"] == "kernel" and x["digest"] in used)]
    change(mine)
    content = b"".join(json.dumps(x).encode() + b"\n" for x in mine)
    return replay(content, name, last_case("memory.copy"), {"c0": GREETING + ANSWERS["right"][1]})


def of_kind(lines: list[Any], kind: str) -> Any:
    return next(line for line in lines if line["line"] == kind)


def test_the_record_without_a_change_passes(recorded: bytes) -> None:
    assert forged(recorded, lambda lines: None).passed


def test_a_forged_source_file_shows_no_line_of_a_file_of_the_judge(recorded: bytes) -> None:
    reference = Path(registry.__file__).parents[1] / "content/lab_04_memory_hierarchy/references/exercises.py"

    def change(lines: list[Any]) -> None:
        kernel = of_kind(lines, "kernel")
        name = next(part for part in kernel["ptx"].split('"') if "<cell c0>" in part)
        kernel["ptx"] = kernel["ptx"].replace(name, str(reference)).replace("st.global", "//")

    found = forged(recorded, change)
    secret = [line.strip() for line in reference.read_text().splitlines() if len(line.strip()) > 8]
    assert found.points == 0
    assert not [line for line in secret if line in text(found)]


def test_arrays_of_another_size_another_shape_and_another_gpu_are_refused(recorded: bytes) -> None:
    def smaller(lines: list[Any]) -> None:
        case = of_kind(lines, "case")
        case["buffers"][0] = 64

    def wider(lines: list[Any]) -> None:
        of_kind(lines, "case")["events"][0]["grid"] = [64, 1, 1]

    def newer(lines: list[Any]) -> None:
        of_kind(lines, "kernel")["cc"] = [9, 0]

    for change, words in (
        (smaller, "not those of the exercise"),
        (wider, "grid"),
        (newer, "compute capability 9.0"),
    ):
        found = forged(recorded, change)
        assert found.points == 0 and words in text(found), text(found)


def test_a_case_that_was_not_recorded_is_named(recorded: bytes) -> None:
    cut_short = forged(recorded, lambda lines: lines.remove(of_kind(lines, "case")))
    left_out = forged(recorded, lambda lines: lines.__setitem__(-1, {"line": "done"}))
    assert cut_short.points == left_out.points == 0
    assert "the process ended before its work was done" in text(cut_short)
    assert "nothing was recorded at" in text(left_out)


def test_a_function_that_is_missing_is_blamed_on_the_cell_that_should_define_it(recorded: bytes) -> None:
    name = "memory.copy"
    failed = [{"line": "failed", "cell": c, "kind": "SyntaxError", "error": f"in {c}"} for c in ("c0", "c1")]
    missing = {"line": "failed", "exercise": name, "kind": "missing", "error": "copy"}
    content = b"".join(json.dumps(line).encode() + b"\n" for line in [*failed, missing, {"line": "done"}])
    for sources, blamed in (
        ({"c0": "def blur(:", "c1": "def copy(:"}, "c1"),
        ({"c0": "copy = cuda.jit(", "c1": "copy[1, 1](a)"}, "c0"),
        ({"c0": "x = (", "c1": "y = ("}, "c0"),
    ):
        found = replay(content, name, last_case(name), sources)
        assert f"the cell '{blamed}' failed: in {blamed}" in " ".join(text(found).split())


def test_a_record_that_is_no_record_costs_the_points_and_says_so(recorded: bytes) -> None:
    def broken(lines: list[Any]) -> None:
        of_kind(lines, "case")["events"][0]["pointers"] = [[0, 99, 0]]

    found = forged(recorded, broken)
    assert found.points == 0 and "cannot be replayed" in text(found)


@pytest.mark.usefixtures("needs_sandbox")
def test_a_reference_submitted_as_an_answer_is_not_there() -> None:
    name = "memory.sectors"
    source = f"from gpulab.checks import registry\nsectors = registry.reference({name!r})"
    steps: list[Any] = [{"cell": "c0", "source": source}]
    steps.append(exercise_step(question(name), find(name), last_case(name), [SEED]))
    content = sandbox.record(job_bytes({"patience": 20, "steps": steps}), Limits(seconds=60)).content
    found = replay(content, name, last_case(name), {})
    assert found.points == 0 and "not installed here" in text(found)
