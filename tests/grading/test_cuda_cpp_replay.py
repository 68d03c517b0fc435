"""CUDA C++ in a submission: recorded as PTX and buffers, as numba's kernels are, and judged on new contents."""

from __future__ import annotations

from collections.abc import Iterator

import jupytext
import pytest

from gpulab.checks import registry
from gpulab.checks.evidence import LaunchTrace
from gpulab.checks.spec import Array, Case, Exercise, Scalar, Shape
from grading.core import sandbox
from grading.core.judge import exercise_step, job_bytes
from grading.core.notebooks import Question
from grading.core.records import read_record
from grading.core.replay import ReplayJob, strings, verdicts
from grading.core.sandbox import Limits
from grading.core.verdicts import ExerciseVerdict
from grading.lms.preprocessors import ClearSolutions

CASES = (Case("100", {"n": 100}), Case("1025", {"n": 1025}), Case("0", {"n": 0}))
KERNEL = Exercise(
    name="toy.twice",
    lab="99",
    correct_points=1,
    evidence=LaunchTrace(
        arguments=lambda sizes: (
            Array("x", (int(sizes["n"]),)),
            Array("y", (int(sizes["n"]),), role="out"),
            Scalar("n", int(sizes["n"]), "int32"),
        ),
        shape=lambda sizes: Shape((max(1, -(-int(sizes["n"]) // 256)),), (256,)),
        face="cupy",
    ),
    cases=CASES,
)
HOST = Exercise(
    name="toy.host",
    lab="99",
    correct_points=1,
    evidence=LaunchTrace(
        arguments=lambda sizes: (Array("x", (int(sizes["n"]),)), Array("y", (int(sizes["n"]),), role="out")),
        face="cupy",
    ),
    cases=CASES,
)
EXERCISES = {"toy.twice": KERNEL, "toy.host": HOST}

TWICE = """
from gpulab import cupy as cp
answer = cp.RawKernel(r'''
extern "C" __global__ void twice(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    %s
}''', "twice")
"""
HALVES = (
    TWICE % "if (i < n) y[i] = x[i];"
    + """
copy = answer
def answer(x, y):
    %s
"""
)
ANSWERS = {
    "right": ("toy.twice", TWICE % "if (i < n) y[i] = 2 * x[i];"),
    "wrong": ("toy.twice", TWICE % "if (i < n) y[i] = 2 * x[i] + (i == 7);"),
    "empty": ("toy.twice", TWICE % "// YOUR CODE HERE"),
    "no C": ("toy.twice", TWICE % "y[i] = two * x[i]"),
    "plain": ("toy.twice", "def answer(x, y, n): pass"),
    "scratch": (
        "toy.host",
        HALVES
        % """
    t = cp.empty_like(x)
    if x.size:
        copy((8,), (256,), (x, t, cp.int32(x.size)))
        cp.ElementwiseKernel("T a, T b", "T c", "c = a + b", "add")(t, x, y)
""",
    ),
    "two kernels of one text": (
        "toy.host",
        """
from gpulab import cupy as cp
module = cp.RawModule(code=r'''
template <int N> __global__ void add(const float* x, float* y, int n, int first) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = first ? N * x[i] : y[i] + N * x[i];
}''', name_expressions=["add<4>", "add<-2>"])
def answer(x, y):
    if x.size:
        for name, first in (("add<4>", 1), ("add<-2>", 0)):
            module.get_function(name)((8,), (256,), (x, y, cp.int32(x.size), cp.int32(first)))
""",
    ),
    "pointers in a structure": (
        "toy.host",
        """
import numpy as np
from gpulab import cupy as cp
kernel = cp.RawKernel(r'''
struct Pair { int n; const float* x; float* y; };
extern "C" __global__ void twice(Pair p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < p.n) p.y[i] = 2 * p.x[i + 1];
}''', "twice")
PAIR = np.dtype([("n", "i4"), ("x", "u8"), ("y", "u8")], align=True)
def answer(x, y):
    shifted = cp.empty(x.size + 1, x.dtype)
    cp.ElementwiseKernel("T a", "T b", "b = a", "move")(x, shifted[1:])
    pair = np.array((x.size, shifted.data.ptr, y.data.ptr), PAIR)
    kernel((8,), (256,), (pair,))
""",
    ),
    "out of step": (
        "toy.twice",
        TWICE % "if (i + 1 < n) { float2 v = *(const float2*)(x + i); y[i] = v.x + v.y; }",
    ),
    "looks": ("toy.host", HALVES % "y[...] = 2 * x"),
}


@pytest.fixture(autouse=True, scope="module")
def exercises() -> Iterator[None]:
    for exercise in EXERCISES.values():
        registry.add(exercise, lambda inputs, sizes: {"y": 2 * inputs["x"]})
    yield
    for name in EXERCISES:
        registry.remove(name)


def _question(name: str) -> Question:
    return Question(name, f"{ANSWERS[name][0]}@{name}", "answer", 1)


def _record(unsafe: bool) -> bytes:
    steps = []
    for name, (exercise, source) in ANSWERS.items():
        steps.append({"cell": name, "source": source})
        steps.append(exercise_step(_question(name), EXERCISES[exercise], CASES, [1, 1, 1]))
    limits = Limits(seconds=120)
    return sandbox.record(job_bytes({"patience": 30, "steps": steps}), limits, unsafe=unsafe).content


@pytest.fixture(scope="module")
def recorded() -> bytes:
    return _record(unsafe=True)


def judged(content: bytes) -> dict[str, ExerciseVerdict]:
    questions = tuple(map(_question, ANSWERS))
    job = ReplayJob(
        content,
        "",
        questions,
        {q.exercise: CASES for q in questions},
        {(q.exercise, case.name): 77 for q in questions for case in CASES},
        {name: source for name, (_, source) in ANSWERS.items()},
        {},
    )
    return dict(zip(ANSWERS, verdicts(job), strict=True))


@pytest.fixture(scope="module")
def found(recorded: bytes) -> dict[str, ExerciseVerdict]:
    return judged(recorded)


def test_right_answers_pass_on_contents_that_were_not_there(found: dict[str, ExerciseVerdict]) -> None:
    assert {name for name, verdict in found.items() if verdict.passed} == {
        "right",
        "scratch",
        "two kernels of one text",
        "pointers in a structure",
    }


@pytest.mark.parametrize(
    "name, words",
    [
        ("wrong", "thread (7, 0, 0) of block (0, 0, 0) wrote it in line 4"),
        ("empty", "no thread writes anything"),
        ("no C", 'identifier "two" is undefined'),
        ("out of step", "Misaligned"),
        ("plain", 'answer = cp.RawKernel(source, "answer")'),
        ("looks", "reads `x` on the host"),
    ],
)
def test_wrong_answers_are_told_why(found: dict[str, ExerciseVerdict], name: str, words: str) -> None:
    text = " ".join(f"{line.summary} {line.reason}" for line in found[name].lines)
    assert words in " ".join(text.split()), text


def test_a_verdict_quotes_the_line_of_cuda_cpp_from_the_cell(found: dict[str, ExerciseVerdict]) -> None:
    assert "line 4: if (i < n) y[i] = 2 * x[i] + (i == 7);" in found["wrong"].lines[0].reason


def test_a_launch_is_reduced_to_ptx_and_buffers(recorded: bytes) -> None:
    trace = read_record(recorded)
    case = trace.recorded["launch trace"]["toy.twice@right"]["1025"]
    (launch,) = case.launches
    assert case.buffers == (4100, 4100)
    assert [(at, buffer, offset) for at, buffer, offset in launch.pointers] == [(0, 0, 0), (8, 1, 0)]
    assert int.from_bytes(launch.arguments[16:20], "little") == 1025
    assert launch.arguments[:16] == bytes(16)  # no address of the sandbox
    assert [(label.name, label.dtype) for label in launch.labels] == [("x", "float32"), ("y", "float32")]
    assert launch.kernel.entry == "twice"
    assert ".entry twice" in launch.kernel.ptx


def test_pointers_inside_a_structure_are_buffers_and_offsets_too(recorded: bytes) -> None:
    case = read_record(recorded).recorded["launch trace"]["toy.host@pointers in a structure"]["1025"]
    move, launch = case.launches
    assert [(at, buffer, offset) for at, buffer, offset in launch.pointers] == [(8, 2, 0), (16, 1, 0)]
    assert launch.arguments[8:24] == bytes(16)  # no address of the sandbox
    assert (2, 4) in [(buffer, offset) for _, buffer, offset in move.pointers]  # a view that begins later


def test_scratch_memory_of_cupy_is_a_buffer_of_the_record(recorded: bytes) -> None:
    case = read_record(recorded).recorded["launch trace"]["toy.host@scratch"]["1025"]
    assert len(case.launches) == 2 and len(case.buffers) == 3
    assert case.uploaded == 0


def test_the_same_comes_out_of_the_sandbox(needs_sandbox: None, found: dict[str, ExerciseVerdict]) -> None:
    assert {name: v.points for name, v in judged(_record(unsafe=False)).items()} == {
        name: v.points for name, v in found.items()
    }


def test_strings_of_a_cell_are_found_and_odd_cells_have_none() -> None:
    cells = ["a = 'x'", "%magic", "b = '\\ud800'", "(" * 5000, "\0"]
    assert list(strings(cells)) == ["x", "\ud800"]


def test_a_solution_in_cuda_cpp_becomes_a_comment_and_one_in_python_an_error() -> None:
    text = '''# %%
twice = cp.RawKernel(r"""
void twice() {
    // ### BEGIN SOLUTION
    secret();
    // ### END SOLUTION
}
""", "twice")

# %%
def host():
    ### BEGIN SOLUTION
    secret()
    ### END SOLUTION
'''
    notebook = jupytext.reads(text, fmt="py:percent")
    for cell in notebook.cells:
        cell.metadata["nbgrader"] = {"solution": True, "grade": False, "schema_version": 3, "grade_id": "x"}
    kernel, host = (cell.source for cell in ClearSolutions().preprocess(notebook, {})[0].cells)
    assert "    // YOUR CODE HERE\n}" in kernel and "secret" not in kernel
    assert "    raise NotImplementedError()" in host and "secret" not in host
