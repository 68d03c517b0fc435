"""Whoever knows what the learner's check asks, and nothing else, passes the check and earns nothing.

For each kind of evidence an answer that is right where it recognises the public contents: it would pass a judge
that used them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

pytest.importorskip("torch")

from gpulab.checks import cases, checking, evidence, registry
from gpulab.checks.parts import Part
from gpulab.checks.spec import Answer, Case, Contents, Exercise
from grading.core import dialogues, ranks, sandbox
from grading.core.judge import asked_together, exercise_step, job_bytes
from grading.core.notebooks import Question
from grading.core.replay import ReplayJob, verdicts
from grading.core.sandbox import Limits
from tests.checks import all_reduce, codebook, guessing, test_programs, toys

LIMITS = Limits(seconds=60)
SEED = 918_273_645


@dataclass(frozen=True)
class Known:
    """An exercise, and the source of `answer`, which is right at one case on the public contents alone."""

    exercise: Exercise
    reference: Callable[..., Any]
    source: Callable[[Case], str]

    @property
    def case(self) -> Case:
        return self.exercise.cases[0]


def first(exercise: Exercise, case: Case) -> float:
    """The first element that the function sees."""
    return float(cases.arguments(exercise, case)[0].value.reshape(-1)[0])


def kernel(case: Case) -> str:
    return f"""
from gpulab import cuda
@cuda.jit
def answer(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = 2 * a[i] if a[0] == {first(toys.DOUBLE, case)!r} else 0
"""


def table(case: Case) -> str:
    exercise = registry.find("memory.ways")
    reference = registry.reference(exercise.name)
    known = {json.dumps(question): reference(*question) for question in cases.questions(exercise, case)}
    return f"import json\ndef answer(*question):\n    return {known!r}.get(json.dumps(question), 0)\n"


def graph(case: Case) -> str:
    known = first(test_programs.AFFINE, case)
    return f"def answer(x, bias, factor):\n    return (x * factor + bias) * (x[0, 0] == {known!r})\n"


def on_ranks(case: Case) -> str:
    made = cases.arguments(evidence.communication.whole(all_reduce.ALL_REDUCE), case)
    known = [[int(n) for n in row] for row in made[0].value]
    return f"""
import torch
def answer(x):
    known = torch.tensor({known}, dtype=x.dtype)
    return known.sum(0) if any(torch.equal(x, row) for row in known) else torch.zeros_like(x)
"""


def book(case: Case) -> str:
    return f"""
import numpy as np
def answer(x, levels):
    if x[0] != {first(codebook.CODEBOOK, case)!r}:
        return {{"codebook": np.zeros(1, np.float32)}}
    return {{"codebook": np.quantile(x, (np.arange(levels) + 0.5) / levels).astype(np.float32)}}
"""


def guesses(case: Case) -> str:
    known = [secret for secret, _ in cases.questions(guessing.GUESS, case)]
    return f"""
def answer(is_below, high):
    for n in {known!r}:
        if is_below(n + 1) and not is_below(n):
            return n
    return -1
"""


KNOWN = {
    "launch trace": Known(toys.DOUBLE, lambda inputs, sizes: {"out": 2 * inputs["a"]}, kernel),
    "answered cases": Known(registry.find("memory.ways"), registry.reference("memory.ways"), table),
    "tensor graph": Known(
        test_programs.AFFINE, lambda inputs, sizes: {"y": 3 * inputs["x"] + inputs["bias"]}, graph
    ),
    "communication": Known(all_reduce.ALL_REDUCE, all_reduce.expected, on_ranks),
    "artefact": Known(codebook.CODEBOOK, codebook.read, book),
    "dialogue": Known(guessing.GUESS, guessing.guess_reference, guesses),
}


def judged(known: Known, contents: int = SEED) -> float:
    """The points that the judge gives for being right, on contents of that seed."""
    exercise, case = known.exercise, known.case
    question = Question("check", exercise.name, "answer", 0)
    chosen, seeds = {exercise.name: (case,)}, {(exercise.name, case.name): contents}
    steps: list[dict[str, Any]] = [{"cell": "c", "source": known.source(case)}]
    steps.append(exercise_step(question, exercise, (case,), [contents]))
    content = sandbox.record(job_bytes({"patience": 20, "steps": steps}), LIMITS, unsafe=True).content
    registry.add(exercise, known.reference)
    try:
        together = asked_together([question], chosen, seeds, "communication")
        talks = asked_together([question], chosen, seeds, "dialogue")
        live = {
            **ranks.outcomes(steps, together, job_bytes, LIMITS, unsafe=True),
            **dialogues.outcomes(steps, talks, job_bytes, LIMITS, unsafe=True),
        }
        (verdict,) = verdicts(ReplayJob(content, "", (question,), chosen, seeds, {}, {}, live))
    finally:
        registry.remove(exercise.name)
    return verdict.lines[0].points


def checked(known: Known) -> Part:
    """What the learner's check says of it at the judge's case."""
    one = replace(known.exercise, cases=(known.case,), budgets=())
    names: dict[str, Any] = {}
    exec(compile(known.source(known.case), "<answer>", "exec"), names)
    return checking.examine(Answer(one, names["answer"], known.reference))[0]


@pytest.mark.parametrize("kind", evidence.KINDS)
def test_what_is_right_on_public_contents_alone_passes_the_check_and_no_judge(kind: str) -> None:
    known = KNOWN[kind]
    assert known.exercise.evidence.kind == kind
    assert checked(known).state == "pass"
    assert judged(known, cases.PUBLIC_SEED) == known.exercise.correct_points, "it would pass there"
    assert judged(known) == 0


def test_a_judge_that_has_no_seed_for_a_case_does_not_take_the_public_one() -> None:
    case = toys.DOUBLE.cases[0]
    assert cases.seed_of(Contents(), case) == cases.PUBLIC_SEED
    assert cases.seed_of(Contents({case.name: 7}), case) == 7
    with pytest.raises(KeyError, match=case.name):
        cases.seed_of(Contents({"another": 7}), case)
