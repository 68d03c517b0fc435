"""What the judge's sandbox writes down of an answer is what the learner's own check sees of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpulab
from gpulab import cuda
from gpulab.checks import Array, Case, Exercise, registry
from gpulab.checks.compare import NotAnAnswer, normal
from gpulab.checks.evidence import LaunchTrace
from grading.core.judge import job_bytes
from grading.core.records import Record, read_record
from grading.core.sandbox import Limits, record
from tests.grading.conftest import asked

IMPORTS = """
import enum
from collections import Counter, OrderedDict, deque, namedtuple
from dataclasses import dataclass
import numpy as np
Point = namedtuple("Point", "x y")
Level = enum.IntEnum("Level", "LOW HIGH")

@dataclass
class Row:
    n: int = 1

seen = []
def growing():
    seen.append(len(seen))
    return seen
"""
ANSWERS = (
    "{3, 20, 1}",
    "frozenset('cab')",
    "{1, 'a', (2, 1)}",
    "range(3)",
    "{'b': 1, 'a': 2}.keys()",
    "{'b': 1, 'a': 2}.values()",
    "{'b': 1, 'a': 2}.items()",
    "{(1, 2): 3, (np.int64(1), 3): 4, 5: 6, True: 7, None: 8, 1.5: 9}",
    "[np.int8(1), np.float16(0.1), np.float32(0.1), np.bool_(True), np.str_('x'), np.longdouble(0.1)]",
    "np.arange(6).reshape(2, 3)",
    "np.array([1, None, 'x'], object)",
    "np.array(2.5)",
    "[True, 1, 1.0, '1', None]",
    "[-0.0, float('nan'), float('inf'), -float('inf')]",
    "[2**63, -(2**200), 10**4000]",
    "[Point(1, 2), Level.HIGH, deque([1]), Counter('aab'), OrderedDict(a=1)]",
    "'\\ud800 \\u2603'",
    "(i for i in range(3))",
    "map(str, [1])",
    "1j",
    "np.complex64(1)",
    "b'bytes'",
    "Row()",
    "print",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
)


@pytest.fixture(scope="module")
def trace() -> Record:
    """What the recorder writes of functions that give these answers."""
    steps: list[dict[str, Any]] = [{"cell": "imports", "source": IMPORTS}]
    for number, answer in enumerate(ANSWERS):
        steps.append({"cell": f"c{number}", "source": f"f{number} = lambda: {answer}"})
        steps.append(asked(answer, f"f{number}"))
    steps.append({"cell": "large", "source": "large = lambda: '4' * (33 << 20)"})
    steps.append(asked("large", "large"))
    steps.append(asked("growing", "growing", times=3))
    outcome = record(job_bytes({"patience": 20, "steps": steps}), Limits(seconds=60), unsafe=True)
    return read_record(outcome.content)


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_is_written_down_as_the_check_sees_it_or_refused_by_both(
    trace: Record, answer: str
) -> None:
    names: dict[str, Any] = {}
    exec(IMPORTS, names)
    try:
        expected = normal(eval(answer, names))
    except NotAnAnswer as odd:
        assert str(odd) in trace.failures[answer].error
    else:
        assert repr(trace.recorded["answered cases"][answer]["1"]) == repr(
            [expected]
        )  # 1, 1.0 and True are three; nan is nan


def test_an_answer_that_later_calls_change_is_written_down_as_it_was(trace: Record) -> None:
    assert trace.recorded["answered cases"]["growing"]["1"] == [[0], [0, 1], [0, 1, 2]]


def test_an_answer_that_is_too_large_to_be_read_costs_no_other_exercise(trace: Record) -> None:
    assert "too large" in trace.failures["large"].error
    assert trace.done and trace.recorded["answered cases"]["growing"]


# ---------------------------------------------------------------- host code around kernels

COPY = Exercise(
    name="toy.copy_by_host_code",
    lab="99",
    correct_points=1.0,
    cases=(Case("2,000", {"n": 2000}),),
    evidence=LaunchTrace(lambda sizes: (Array("a", (sizes["n"],)), Array("out", (sizes["n"],), role="out"))),
)


@cuda.jit
def copied(a, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i]


def uploads_a_table(a, out):
    table = cuda.to_device(np.arange(a.size, dtype=np.float32))
    copied[8, 256](table, out)
    copied[8, 256](a, out)


def writes_between_launches(a, out):
    copied[8, 256](a, out)
    out[0] = 1
    copied[8, 256](a, out)


def writes_to_its_input(a, out):
    a[0] = a.dtype.type(1)
    copied[8, 256](a, out)


def launches_without_end(a, out):
    for _ in range(2001):
        copied[1, 32](a[:1], out)


TABLE = np.random.default_rng(1).random(2000).astype(np.float32)


@cuda.jit
def with_constants(a, out):
    table = cuda.const.array_like(TABLE)
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + 0 * table[i % 2000]


def brings_constants(a, out):
    with_constants[8, 256](a, out)


def uses_scratch_again(a, out):
    for value in (1, 2):
        scratch = cuda.to_device(np.full(a.size, value, np.uint8))
        copied[8, 256](a, out)
        del scratch


@pytest.fixture
def copy_exercise():
    registry.add(COPY, lambda inputs, sizes: {"out": inputs["a"]})
    yield
    registry.remove(COPY.name)


@pytest.mark.usefixtures("copy_exercise")
@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (uploads_a_table, "uploads 8,000 bytes"),
        (writes_between_launches, "writes to `out` from the host between launches"),
        (writes_to_its_input, "writes to the input `a` from the host"),
        (launches_without_end, "launches more than 2,000 kernels"),
        (brings_constants, "8,000 bytes of constants"),
    ],
)
def test_what_the_judge_refuses_of_host_code_the_check_refuses_too(fn: Any, words: str) -> None:
    """The check gave full marks once, and the judge none."""
    verdict = gpulab.check(COPY.name, fn)
    assert not verdict.points and words in str(verdict)


@pytest.mark.usefixtures("copy_exercise")
def test_memory_that_is_filled_is_no_upload() -> None:
    assert gpulab.check(COPY.name, uses_scratch_again).points == 1
