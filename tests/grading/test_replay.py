"""Replaying records on fresh contents: what is right stays right, and what only looked right does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpulab.exercises import find, registry
from gpulab.exercises.spec import Case, Exercise
from grading import sandbox
from grading.judge import exercise_step, job_bytes, judge_cases
from grading.notebooks import Question
from grading.replay import ReplayJob, verdicts
from grading.sandbox import Limits
from grading.verdicts import ExerciseVerdict

GREETING = "import numpy as np\nfrom gpulab import cuda\n"
SEED = 12345


def record(source: str, exercise: Exercise, function: str, cases: tuple[Case, ...]) -> bytes:
    """What the recorder makes of a cell (without a sandbox: these cells are ours)."""
    question = Question("check", exercise.name, function, exercise.points)
    steps = [{"cell": "mine", "source": GREETING + source}]
    steps.append(exercise_step(question, exercise, cases, [SEED] * len(cases)))
    return sandbox.record(
        job_bytes({"patience": 20, "steps": steps}), Limits(seconds=60), unsafe=True
    ).content


def replay(
    content: bytes, source: str, exercise: Exercise, function: str, cases: tuple[Case, ...]
) -> ExerciseVerdict:
    """The verdict on a record, whatever is in it."""
    question = Question("check", exercise.name, function, exercise.points)
    seeds = {(exercise.name, case.name): SEED for case in cases}
    job = ReplayJob(content, "", (question,), {exercise.name: cases}, seeds, {"mine": GREETING + source}, {})
    return next(iter(verdicts(job)))


def judged(name: str, source: str, sizes: int = 2) -> ExerciseVerdict:
    """Record and replay a cell at the judge's last cases of an exercise."""
    exercise, function = find(name), name.partition(".")[2]
    cases = tuple(c for c in judge_cases(exercise) if all(c.sizes.values()))[-sizes:]
    return replay(record(source, exercise, function, cases), source, exercise, function, cases)


def text(verdict: ExerciseVerdict) -> str:
    return "\n".join(f"{line.label}: {line.summary}\n{line.reason}" for line in verdict.lines)


COPY = """
@cuda.jit
def copy(a, b):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        {body}
"""


def test_a_right_kernel_gets_all_points() -> None:
    assert judged("memory.copy", COPY.format(body="b[i] = a[i]")).passed


def test_a_result_that_needs_the_garbage_of_one_run_is_found_by_the_other() -> None:
    found = judged("memory.copy", COPY.format(body="b[i] = a[i] if b[i] != b[i] else 0"))
    assert found.points == 0
    assert "depends on what stood in memory before" in text(found)


def test_an_input_that_is_changed_costs_the_points() -> None:
    found = judged("memory.copy", COPY.format(body="b[i] = a[i]; a[i] = 0"))
    assert found.points == 0 and "changed" in text(found) and "`a`" in text(found)


def test_writing_beyond_an_array_is_said_with_the_line_of_the_cell() -> None:
    found = judged("memory.copy", COPY.format(body="b[i] = a[i]; b[i + a.size] = 1"))
    assert found.points == 0
    assert "OutOfBounds in kernel copy" in text(found) and "b[i + a.size] = 1" in text(found)


def test_an_endless_kernel_is_said_to_have_no_end() -> None:
    found = judged(
        "memory.copy", COPY.format(body="\n        while a[0] == a[0]:\n            b[0] = b[0]"), 1
    )
    assert found.points == 0 and "No end" in text(found)


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


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("print(rod.copy_to_host())", "reads `rod` on the host"),
        ("rod[0] = 1", "writes to the input `rod`"),
        ("step[8, 256](rod, out); out[0:4] = np.arange(4, dtype=np.float32)", "between launches"),
        (
            "t = cuda.to_device(np.arange(rod.size + 8192, dtype=np.float32)); step[64, 256](t, out)",
            "uploads",
        ),
        ("raise ValueError('no idea')", "no idea"),
        ("pass", "launched no kernel"),
        ("helper(rod)", "a helper that stands in a cell of your own"),
    ],
)
def test_host_code_that_breaks_a_rule_is_told_which(body: str, words: str) -> None:
    found = judged("basics.diffuse", HOST.format(body=body), 1)
    assert found.points == 0
    assert words in text(found).replace("\n", " "), text(found)


def test_scratch_arrays_and_fills_by_the_host_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    source = HOST.format(
        body="t = cuda.device_array_like(rod); t[:] = 0; step[64, 256](rod, t); step[64, 256](rod, out)"
    )
    found = judged("basics.diffuse", source, 1)
    assert "upload" not in text(found) and "should be" in text(found)


# ---------------------------------------------------------------- forged records


@pytest.fixture(scope="module")
def honest() -> tuple[bytes, str, Exercise, tuple[Case, ...]]:
    exercise = find("memory.copy")
    cases = (Case("2,048", {"n": 2048}),)
    source = COPY.format(body="b[i] = a[i]")
    return record(source, exercise, "copy", cases), source, exercise, cases


def forged(honest: Any, change: Any) -> ExerciseVerdict:
    """The verdict on an honest record after a change to its lines."""
    content, source, exercise, cases = honest
    lines = [json.loads(line) for line in content.splitlines()]
    change(lines)
    return replay(b"".join(json.dumps(x).encode() + b"\n" for x in lines), source, exercise, "copy", cases)


def of_kind(lines: list[Any], kind: str) -> Any:
    return next(line for line in lines if line["line"] == kind)


def test_the_record_without_a_change_passes(honest: Any) -> None:
    assert forged(honest, lambda lines: None).passed


def test_a_forged_source_file_shows_no_line_of_a_file_of_the_judge(honest: Any) -> None:
    reference = Path(registry.__file__).with_name("references") / "lab_04_memory_hierarchy.py"

    def change(lines: list[Any]) -> None:
        kernel = of_kind(lines, "kernel")
        name = next(part for part in kernel["ptx"].split('"') if "<cell mine>" in part)
        kernel["ptx"] = kernel["ptx"].replace(name, str(reference)).replace("st.global", "//")

    found = forged(honest, change)
    secret = [line.strip() for line in reference.read_text().splitlines() if len(line.strip()) > 8]
    assert found.points == 0
    assert not [line for line in secret if line in text(found)]


def test_arrays_of_another_size_another_shape_and_another_gpu_are_refused(honest: Any) -> None:
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
        found = forged(honest, change)
        assert found.points == 0 and words in text(found), text(found)


def test_a_case_that_was_not_recorded_is_named(honest: Any) -> None:
    found = forged(honest, lambda lines: lines.remove(of_kind(lines, "case")))
    assert found.points == 0 and "nothing was recorded at 2,048" in text(found)


def test_a_record_that_is_no_record_costs_the_points_and_says_so(honest: Any) -> None:
    def broken(lines: list[Any]) -> None:
        of_kind(lines, "case")["events"][0]["pointers"] = [[0, 99, 0]]

    found = forged(honest, broken)
    assert found.points == 0 and "cannot be replayed" in text(found)


def test_a_reference_submitted_as_an_answer_is_not_there() -> None:
    source = "from gpulab.exercises import registry\nsectors = registry.reference('memory.sectors')"
    exercise = find("memory.sectors")
    if sandbox.obstacle():
        pytest.skip(sandbox.obstacle())
    question = Question("check", exercise.name, "sectors", exercise.points)
    steps: list[Any] = [{"cell": "mine", "source": source}]
    steps.append(exercise_step(question, exercise, exercise.cases[:1], [SEED]))
    content = sandbox.record(job_bytes({"patience": 20, "steps": steps}), Limits(seconds=60)).content
    found = replay(content, source, exercise, "sectors", exercise.cases[:1])
    assert found.points == 0 and "not installed here" in text(found)
