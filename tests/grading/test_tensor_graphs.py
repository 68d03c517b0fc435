"""Tensor graphs from a sandbox: replayed on fresh contents, and forged ones refused with a reason."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("torch")

from gpulab.checks import Array, Budget, Case, Exercise, registry
from gpulab.checks.evidence import TensorGraph
from gpulab.checks.operators import COMMON
from grading.core import sandbox
from grading.core.judge import exercise_step, job_bytes
from grading.core.notebooks import Question
from grading.core.replay import ReplayJob, verdicts
from grading.core.sandbox import Limits
from grading.core.verdicts import ExerciseVerdict

SEED = 12345
NAME = "toy.rows"
ROWS = Exercise(
    name=NAME,
    lab="99",
    correct_points=1.0,
    evidence=TensorGraph(
        arguments=lambda s: (
            Array("table", (9, 5)),
            Array("rows", (int(s["n"]),), "int64", fill="integers:0:9"),
            Array("seen", (9,), "int64", "inout", "integers:0:50"),
            Array("out", (int(s["n"]), 5), role="out"),
        ),
        operators=COMMON,
    ),
    cases=(Case("4 of 9 × 5", {"n": 4}), Case("8 of 9 × 5", {"n": 8})),
    budgets=(Budget("launches", 3, 1.0, "launches", naive=6, unit="launches"),),
)
RIGHT = """
import torch

def rows(table, rows, seen):
    seen.add_(1)
    return table.index_select(0, rows).clone()
"""
ANSWERS = {
    "right": RIGHT,
    "stores": RIGHT.replace("return", "global kept; kept = table\n    return"),
    "side effects": RIGHT.replace(
        "seen.add_(1)", "import os; os.environ['LEAK'] = '1'; print('x' * 10**6); seen.add_(1)"
    ),
    "item": RIGHT.replace("return", "int(rows[0])\n    return"),
    "writes input": RIGHT.replace("seen.add_(1)", "seen.add_(1); table.mul_(1.5)"),
    "wrong": RIGHT.replace("seen.add_(1)", "seen.add_(2)"),
    "stub": "def rows(table, rows, seen):\n    raise NotImplementedError()",
    "reads a file": RIGHT.replace("return", "torch.from_file('/etc/passwd', size=10)\n    return"),
    "loads the reference": RIGHT.replace(
        "return", "from gpulab.checks import registry; registry.reference('memory.copy')\n    return"
    ),
}


@pytest.fixture(autouse=True)
def exercise() -> Iterator[None]:
    registry.add(ROWS, lambda x, sizes: {"out": x["table"][x["rows"]], "seen": x["seen"] + 1})
    yield
    registry.remove(NAME)


def question(variant: str) -> Question:
    return Question("check", f"{NAME}@{variant}", "rows", 0)


def job() -> bytes:
    steps: list[Any] = []
    for number, (variant, source) in enumerate(ANSWERS.items()):
        steps.append({"cell": f"c{number}", "source": source})
        steps.append(exercise_step(question(variant), ROWS, ROWS.cases, [SEED, SEED]))
    return job_bytes({"patience": 30, "steps": steps})


@pytest.fixture(scope="module")
def recorded() -> bytes:
    return sandbox.record(job(), Limits(), unsafe=True).content


def replayed(content: bytes, variant: str) -> ExerciseVerdict:
    asked = question(variant)
    seeds = {(asked.exercise, case.name): SEED for case in ROWS.cases}
    return next(iter(verdicts(ReplayJob(content, "", (asked,), {asked.exercise: ROWS.cases}, seeds, {}, {}))))


def text(verdict: ExerciseVerdict) -> str:
    return " ".join(f"{line.label}: {line.summary} {line.reason}" for line in verdict.lines)


def test_right_answers_pass_whatever_else_they_do(recorded: bytes) -> None:
    for variant in ("right", "stores", "side effects"):
        found = replayed(recorded, variant)
        assert found.passed, text(found)


@pytest.mark.usefixtures("needs_sandbox")
def test_it_works_within_the_sandbox() -> None:
    content = sandbox.record(job(), Limits()).content
    assert replayed(content, "right").passed
    assert "not installed here" in text(replayed(content, "loads the reference"))


@pytest.mark.parametrize(
    ("variant", "words"),
    [
        ("item", "asks for the value of a tensor"),
        ("item", "int(rows[0])"),
        ("writes input", "changed 45 elements of the input `table`"),
        ("wrong", "`seen[0]` is"),
        ("stub", "NotImplementedError"),
        ("reads a file", "operator `from_file` is not on this exercise's list"),
    ],
)
def test_what_is_wrong_is_told(recorded: bytes, variant: str, words: str) -> None:
    found = replayed(recorded, variant)
    assert found.points == 0 and words in text(found), text(found)


def test_the_judges_tolerance_and_budgets_are_the_exercises(recorded: bytes) -> None:
    strict = replace(ROWS, budgets=(replace(ROWS.budgets[0], limit=1, naive=2),))
    registry.add(strict, registry.reference(NAME))
    found = replayed(recorded, "right")
    assert [line.points for line in found.lines] == [1.0, 0.0]
    assert "3 launches" in text(found) and "launches 3 instead of 1" in found.reason


# ---------------------------------------------------------------- forged graphs


def forged(recorded: bytes, change: Callable[[dict[str, Any]], Any]) -> ExerciseVerdict:
    """The verdict on the graph of the right answer at the last size after a change."""
    lines = [json.loads(line) for line in recorded.splitlines()]
    mine = [x for x in lines if x["line"] == "graph" and x["exercise"] == f"{NAME}@right"]
    change(mine[-1]["graph"])
    return replayed(b"".join(json.dumps(x).encode() + b"\n" for x in mine), "right")


def node(operator: str, *args: Any, made: tuple[int | None, ...] = (None,), **named: Any) -> list[Any]:
    return [operator, list(args), named, list(made), 1]


def insert(*nodes: list[Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda graph: graph["nodes"].__setitem__(slice(0, 0), nodes)


def table(number: int = 0) -> dict[str, int]:
    return {"tensor": number}


FORGED = {
    "an operator that is not listed": (
        insert(node("from_file.default", "/etc/passwd", size=4)),
        "not on this exercise's list",
    ),
    "an operator of another library": (insert(node("prims::add.default", table(), 1)), "cannot be replayed"),
    "an operator that is none": (insert(node("add.Nothing", table(), 1)), "stopped on real data"),
    "an attribute in its place": (insert(node("add.__class__", table(), 1)), "stopped on real data"),
    "arguments of other types": (insert(node("add.Tensor", "no", [1])), "stopped on real data"),
    "memory without end": (insert(node("full.default", [1 << 40], 1.0)), "stopped on real data"),
    "more memory than allowed": (insert(node("empty.memory_format", [6 << 27])), "at most 2,147,483,648"),
    "a view beyond its memory": (
        insert(node("as_strided.default", table(), [1000], [1], 0)),
        "stopped on real data",
    ),
    "an index beyond the end": (
        insert(node("select.int", table(), 0, 90)),
        "stopped on real data",
    ),
    "rows beyond the end": (
        insert(node("add_.Scalar", table(1), 40, made=(None,))),
        "stopped on real data",
    ),
    "an input that is written": (insert(node("mul_.Scalar", table(), 0)), "input `table`"),
    "a tensor that is not there": (insert(node("add.Scalar", table(99), 1)), "cannot be replayed"),
    "a tensor from the future": (insert(node("add.Scalar", table(3), 1)), "cannot be replayed"),
    "an argument of no kind": (insert(node("add.Scalar", {"file": "x"}, 1)), "cannot be replayed"),
    "lists without end": (insert(node("cat.default", [[[[[[table()]]]]]])), "cannot be replayed"),
    "huge integers": (insert(node("add.Scalar", table(), 1 << 70)), "cannot be replayed"),
    "another device": (
        insert(node("_to_copy.default", table(), device={"device": "cuda"})),
        "cannot be replayed",
    ),
    "huge constants": (
        lambda graph: graph.__setitem__("constants", [["float32", [8, 5], "AAAA" * 4000]]),
        "cannot be replayed",
    ),
    "constants of another size": (
        lambda graph: graph.__setitem__("constants", [["float32", [400], "AAAA"]]),
        "cannot be replayed",
    ),
    "objects as constants": (
        lambda graph: graph.__setitem__("constants", [["object", [0], ""]]),
        "cannot be replayed",
    ),
    "a result of another shape": (
        lambda graph: graph.__setitem__("results", [0]),
        "does not fit the arrays",
    ),
    "results that are missing": (lambda graph: graph.__setitem__("results", []), "does not fit the arrays"),
    "other inputs": (lambda graph: graph.__setitem__("inputs", 2), "cannot be replayed"),
    "more inputs": (lambda graph: graph.__setitem__("inputs", 4), "does not fit the arrays"),
    "no nodes": (lambda graph: graph.pop("nodes"), "cannot be replayed"),
    "operators without end": (insert(*[node("neg.default", table())] * 20_001), "cannot be replayed"),
}


def test_the_graph_without_a_change_passes(recorded: bytes) -> None:
    assert forged(recorded, lambda graph: None).passed


@pytest.mark.parametrize("attack", FORGED)
def test_a_forged_graph_earns_nothing_and_says_why(recorded: bytes, attack: str) -> None:
    change, words = FORGED[attack]
    found = forged(recorded, change)
    assert found.points == 0 and not found.ungraded
    assert words in text(found), text(found)
