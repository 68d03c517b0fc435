"""A kind of evidence is one class and one row: a new one goes through check, recorder, reader and judge."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from gpulab.checks import Case, Exercise, cases, checking, evidence, registry
from gpulab.checks.every_case import Failure, parts
from gpulab.checks.parts import Detail, Part
from gpulab.checks.spec import Answer, Evidence, OnQuestions
from gpulab.foundation.strict import items, number
from grading.core import recorder
from grading.core.judge import exercise_step
from grading.core.notebooks import Question
from grading.core.replay import ReplayJob, verdicts


@dataclass(frozen=True)
class Sequences(OnQuestions):
    """The function yields whole numbers, at most `most` of them."""

    kind = "sequence"
    line = "sequence"

    most: int = 10

    def examine(self, answer: Answer) -> tuple[Part, ...]:
        def at(case: Case) -> Failure | None:
            for question in cases.asked(answer, case):
                got = [n for n, _ in zip(answer.fn(*question), range(self.most), strict=False)]
                if got != answer.reference(*question):
                    return Failure(case, (Detail(f"yields {got}"),))
            return None

        return parts(answer.exercise, answer.fn, at, lambda: ())

    def step(self, exercise: Exercise, case: Case, seed: int) -> dict[str, Any]:
        return {"name": case.name, "questions": cases.questions(exercise, case, seed), "most": self.most}

    @staticmethod
    def record(function: Any, record: Any, exercise: str, case: dict[str, Any]) -> None:
        yields = [
            list(zip(function(*question), range(case["most"]), strict=False))
            for question in case["questions"]
        ]
        found = [[n for n, _ in each] for each in yields]
        record.line("sequence", exercise=exercise, case=case["name"], yields=found)

    @staticmethod
    def read(facts: Mapping[str, Any], kernels: Mapping[str, Any]) -> list[list[int]]:
        return [[number(n, 1000) for n in items(each, 100)] for each in items(facts["yields"], 100)]

    def replay(self, answer: Answer, recorded: Mapping[str, Any]) -> tuple[Part, ...]:
        left = iter([each for case in answer.exercise.cases for each in recorded[case.name]])
        return self.examine(replace(answer, fn=lambda *question: next(left)))


EVENS = Exercise(
    name="toy.evens",
    lab="99",
    correct_points=3.0,
    cases=(Case("small", {"high": 10}), Case("large", {"high": 100})),
    evidence=Sequences(
        lambda sizes, numbers: [(int(numbers.integers(1, int(sizes["high"]))),) for _ in range(5)]
    ),
)


def expected(n: int) -> list[int]:
    return list(range(0, 2 * n, 2))[:10]


def evens(n: int) -> Iterator[int]:
    yield from range(0, 2 * n, 2)


def odds(n: int) -> Iterator[int]:
    yield from range(1, 2 * n, 2)


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(evidence.KINDS, "sequence", Sequences)
    registry.add(EVENS, expected)
    yield
    registry.remove(EVENS.name)


def judged(fn: Any, folder: Path, seed: int = 5) -> float:
    """The points of the judge, after a record that went through a file."""
    path = folder / "record"
    path.touch()
    question = Question("check", EVENS.name, fn.__name__, 0)
    record = recorder.Record(str(path))
    recorder.record_exercise(fn, record, exercise_step(question, EVENS, EVENS.cases, [seed, seed]))
    record.line("done")
    os.close(record.descriptor)
    seeds = {(EVENS.name, case.name): seed for case in EVENS.cases}
    job = ReplayJob(path.read_bytes(), "", (question,), {EVENS.name: EVENS.cases}, seeds, {}, {})
    (verdict,) = verdicts(job)
    return verdict.points


@pytest.mark.parametrize(("fn", "points"), [(evens, 3), (odds, 0)])
def test_a_new_kind_is_a_class_and_a_row(fn: Any, points: float, tmp_path: Path) -> None:
    assert sum(p.points for p in checking.examine(Answer(EVENS, fn, expected))) == points
    assert judged(fn, tmp_path) == points


def test_what_a_kind_refuses_to_read_is_no_record(tmp_path: Path) -> None:
    def huge(n: int) -> Iterator[int]:
        yield 10**9

    assert judged(huge, tmp_path) == 0


def test_nobody_asks_which_kind_an_exercise_has_by_its_name() -> None:
    """Whoever needs to know asks the class: a comparison of names would have to know every kind."""
    root = Path(__file__).parents[2]
    compared = [
        f"{path.relative_to(root)}: {line.strip()}"
        for folder in ("gpulab", "grading")
        for path in (root / folder).rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if ".evidence ==" in line or ".evidence !=" in line or ".evidence in" in line
    ]
    assert compared == []


@pytest.mark.parametrize("name", evidence.KINDS)
def test_every_kind_says_how_it_is_examined_and_replayed(name: str) -> None:
    kind = evidence.KINDS[name]
    own = ["examine", "step", "replay", *(["serving"] if kind.live else ["record", "read"])]
    assert kind.kind == name and bool(kind.line) is not kind.live
    assert [method for method in own if getattr(kind, method) is getattr(Evidence, method)] == []
