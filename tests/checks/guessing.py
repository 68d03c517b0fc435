"""Toy exercises whose function asks back, and answers to them: right, costly, wrong, stuck."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpulab.checks import Budget, Case, Exercise, WrongAnswer, branches
from gpulab.checks.evidence import Dialogues

GUESS = Exercise(
    name="toy.guess",
    lab="99",
    correct_points=1.0,
    evidence=Dialogues(
        questions=lambda sizes, numbers: [
            (int(n), int(sizes["high"])) for n in numbers.integers(0, int(sizes["high"]), 3)
        ],
    ),
    cases=(Case("up to 8", {"high": 8}), Case("up to 1000", {"high": 1000})),
    budgets=(
        Budget(
            "questions", lambda s: int(s["high"]).bit_length(), 1.0, "questions", naive=400, unit="questions"
        ),
    ),
)
DRAW = Exercise(
    name="toy.draw",
    lab="99",
    correct_points=1.0,
    evidence=Dialogues(questions=lambda sizes, numbers: [([0.5, 0.25, 0.25],)]),
    cases=(Case("two of three", {"n": 3}),),
)


def guess_reference(ask: Callable[..., Any], secret: int, high: int) -> dict[str, float]:
    """The learner finds a number that only this side knows."""
    asked = 0

    def is_below(n: Any) -> bool:
        nonlocal asked
        asked += 1
        if type(n) is not int:
            raise WrongAnswer(f"it asks `is_below({n!r})`, which is no whole number")
        return secret < n

    found = ask(is_below, high)
    if found != secret:
        raise WrongAnswer(f"it finds {found}, should be {secret}")
    return {"questions": float(asked)}


def draw_reference(ask: Callable[..., Any], weights: list[float]) -> dict[str, float]:
    """The learner draws two different indices; the order counts."""
    found = branches.distribution(lambda choose: ask(choose, weights))
    expected = {
        (a, b): weights[a] * weights[b] / (1 - weights[a]) for a in range(3) for b in range(3) if a != b
    }
    branches.compare(found, expected)
    return {}


def halves(is_below, high):
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        if is_below(middle):
            high = middle
        else:
            low = middle
    return low


def one_by_one(is_below, high):
    n = 0
    while not is_below(n + 1):
        n += 1
    return n


def without(choose, weights):
    first = choose(weights)
    rest = [0.0 if i == first else w / (1 - weights[first]) for i, w in enumerate(weights)]
    return [first, choose(rest)]


def again_until_another(choose, weights):
    first = choose(weights)
    for _ in range(3):
        second = choose(weights)
        if second != first:
            break
    return [first, second]


def not_normalised(choose, weights):
    first = choose(weights)
    return [first, choose([0.0 if i == first else w for i, w in enumerate(weights)])]
