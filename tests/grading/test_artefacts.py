"""Artefacts from a sandbox: scored on data that was never inside it; forged ones are refused with a reason."""

from __future__ import annotations

import base64
import inspect
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gpulab.checks import cases, registry
from grading.core import sandbox
from grading.core.judge import exercise_step, job_bytes
from grading.core.notebooks import Question
from grading.core.replay import ReplayJob, verdicts
from grading.core.sandbox import Limits
from grading.core.verdicts import ExerciseVerdict
from tests.checks import codebook
from tests.checks.codebook import CODEBOOK, NAME, read

SEED = 4321
LLOYD = inspect.getsource(codebook.lloyd)
ANSWERS = {
    "right": LLOYD.replace("lloyd", "answer"),
    "prints and plots": LLOYD.replace("lloyd", "answer").replace("for _", "print('x' * 10**6)\n    for _"),
    "naive": inspect.getsource(codebook.evenly_spaced).replace("evenly_spaced", "answer"),
    "remembers": inspect.getsource(codebook.remembers_all).replace("remembers_all", "answer"),
    "stub": "def answer(x, levels):\n    raise NotImplementedError()",
    "looks for what is held out": (
        "def answer(x, levels):\n    from gpulab.checks import cases, registry\n"
        "    made = cases.arguments(registry.find('toy.codebook'), registry.find('toy.codebook').cases[0])\n"
        "    return {'codebook': made[-1].value}"
    ),
    "says that it is right": (
        "class Yes(dict):\n    def __eq__(self, other): return True\n"
        "def answer(x, levels):\n    return Yes(codebook=np.zeros((2, 2, 2)))"
    ),
    "an array that lies": (
        "class Small(np.ndarray):\n    nbytes = 4\n"
        "def answer(x, levels):\n    return {'codebook': x.view(Small)}"
    ),
    "too large": "def answer(x, levels):\n    return {'codebook': np.zeros(9_000_000)}",
    "is stopped": "def answer(x, levels):\n    while True: pass",
}


@pytest.fixture(scope="module")
def recorded() -> Iterator[tuple[bytes, str]]:
    if why := sandbox.obstacle():
        pytest.skip(why)
    registry.add(CODEBOOK, read)
    steps: list[dict[str, Any]] = [{"cell": "imports", "source": "import numpy as np"}]
    for name, source in ANSWERS.items():
        steps.append({"cell": name, "source": source})
        question = Question("check", f"{NAME}@{name}", "answer", 3)
        steps.append(exercise_step(question, CODEBOOK, CODEBOOK.cases, [SEED] * len(CODEBOOK.cases)))
    job = job_bytes({"patience": 5, "steps": steps})
    outcome = sandbox.record(job, Limits(seconds=120, patience=5))
    yield outcome.content, job.decode()
    registry.remove(NAME)


def verdict(content: bytes, name: str) -> ExerciseVerdict:
    question = Question("check", f"{NAME}@{name}", "answer", 3)
    chosen = {question.exercise: CODEBOOK.cases}
    seeds = {(question.exercise, case.name): SEED for case in CODEBOOK.cases}
    return next(iter(verdicts(ReplayJob(content, "", (question,), chosen, seeds, {}, {}))))


def words(found: ExerciseVerdict) -> str:
    return " ".join(" ".join(f"{x.label}: {x.summary} {x.reason}" for x in found.lines).split())


@pytest.mark.parametrize("name", ["right", "prints and plots"])
def test_a_good_artefact_gets_full_marks(recorded: tuple[bytes, str], name: str) -> None:
    assert verdict(recorded[0], name).passed, words(verdict(recorded[0], name))


@pytest.mark.parametrize(
    "name, points, says",
    [
        ("naive", 2.0, "error"),
        ("remembers", 1.0, "size"),
        ("stub", 0.0, "not answered"),
        ("says that it is right", 0.0, "cannot be read as the exercise describes it"),
        ("an array that lies", 1.0, "24,016"),
        ("too large", 0.0, "at most 16,777,216 may be handed in"),
        ("is stopped", 0.0, "stopped after 5 s"),
        ("looks for what is held out", 0.0, "toy.codebook"),
    ],
)
def test_others_get_what_their_honest_part_deserves(
    recorded: tuple[bytes, str], name: str, points: float, says: str
) -> None:
    found = verdict(recorded[0], name)
    assert says in words(found)
    assert points <= found.points < points + 1, words(found)


def test_nothing_that_goes_into_the_sandbox_tells_what_is_held_out(recorded: tuple[bytes, str]) -> None:
    steps = [s for s in json.loads(recorded[1])["steps"] if "cases" in s]
    arrays = [a for s in steps for c in s["cases"] for a in c["arguments"] if "array" in a]
    assert {a["array"] for a in arrays} == {"x"}
    assert str(SEED) not in json.dumps([{k: v for k, v in a.items() if k != "contents"} for a in arrays])
    for case in CODEBOOK.cases:
        held_out = next(a.value for a in cases.arguments(CODEBOOK, case, SEED) if a.name == "fresh")
        for array in arrays:
            given = np.frombuffer(base64.b64decode(array["contents"]))
            assert not np.isin(held_out, given).any()


def test_a_forged_record_is_refused(recorded: tuple[bytes, str]) -> None:
    forged = [
        json.loads(line) for line in recorded[0].splitlines() if b'"artefact"' in line and b"@right" in line
    ]
    assert forged
    for line in forged:
        line["arrays"][0]["shape"] = [1 << 40]
    content = "".join(json.dumps(line) + "\n" for line in forged).encode()
    assert verdict(content, "right").points == 0
    assert np.isfinite(verdict(content, "right").points)
