"""What a program that draws gives with which probability: every way in which its draws can come out is gone
through, so the distribution is exact up to rounding, and nothing is estimated."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from . import messages
from .spec import WrongAnswer

# Draws one index with the given probabilities, which sum to 1.
Choose = Callable[[list[float]], int]

MOST_WAYS = 10_000
LARGEST_DRAW = 4096  # entries
ROUNDING = 1e-6  # by which probabilities may miss a sum of 1, and those of two answers differ


def distribution(play: Callable[[Choose], Any]) -> dict[Hashable, float]:
    """The probability of each answer of ``play(choose)``; lists in an answer become tuples.

    `play` is called once for each way in which its draws can come out; what has probability 0 is never drawn.
    Raises WrongAnswer where something else than probabilities is drawn from, where the same draws do not
    lead to the same next one, and for more than MOST_WAYS ways.
    """
    found: dict[Hashable, float] = {}
    script: list[int] = []  # what each draw gives
    known: list[list[float]] = []  # the probabilities of each draw on the script
    for _ in range(MOST_WAYS):
        draws = _Draws(script, known)
        answer = _frozen(play(draws))
        if draws.made < len(script):
            raise WrongAnswer(messages.other_draws())
        found[answer] = found.get(answer, 0.0) + math.prod(
            p[pick] for p, pick in zip(known, script, strict=True)
        )
        if not _turn(script, known):
            return found
    raise WrongAnswer(messages.too_many_ways(MOST_WAYS))


class _Draws:
    """Follows the script, and continues it with the first index that can be drawn."""

    __name__ = "choose"

    def __init__(self, script: list[int], known: list[list[float]]) -> None:
        self.script, self.known, self.made = script, known, 0

    def __call__(self, probabilities: list[float]) -> int:
        p = checked(probabilities)
        if self.made == len(self.script):
            self.known.append(p)
            self.script.append(_next(p, 0))
        elif p != self.known[self.made]:
            raise WrongAnswer(messages.other_draws())
        self.made += 1
        return self.script[self.made - 1]


def _next(p: list[float], start: int) -> int:
    """The first index from `start` on that can be drawn; -1 where there is none."""
    return next((i for i in range(start, len(p)) if p[i] > 0), -1)


def _turn(script: list[int], known: list[list[float]]) -> bool:
    """Make the script the next way; False after the last."""
    while script:
        script[-1] = _next(known[-1], script[-1] + 1)
        if script[-1] >= 0:
            return True
        del script[-1], known[-1]
    return False


def checked(probabilities: Any) -> list[float]:
    """The probabilities as floats. Raises WrongAnswer where they are none."""
    if not isinstance(probabilities, list | tuple) or not 0 < len(probabilities) <= LARGEST_DRAW:
        raise WrongAnswer(messages.not_probabilities("it takes a list of numbers"))
    if any(isinstance(p, bool) or not isinstance(p, int | float) for p in probabilities):
        raise WrongAnswer(messages.not_probabilities("not all of its entries are numbers"))
    p = [float(x) for x in probabilities]
    if not all(math.isfinite(x) for x in p):
        raise WrongAnswer(messages.not_probabilities("an entry is not finite"))
    if min(p) < 0:
        raise WrongAnswer(messages.not_probabilities(f"entry {p.index(min(p))} is {min(p):.6g}"))
    if abs(math.fsum(p) - 1) > ROUNDING:
        raise WrongAnswer(messages.not_probabilities(f"they sum to {math.fsum(p):.6g}"))
    return p


def _frozen(answer: Any) -> Hashable:
    if isinstance(answer, list | tuple):
        return tuple(map(_frozen, answer))
    if isinstance(answer, dict):
        raise TypeError("an answer of draws is a number or a list")
    return answer


def compare(
    found: Mapping[Hashable, float], expected: Mapping[Hashable, float], what: str = "it gives {answer}"
) -> None:
    """Raises WrongAnswer, naming the answer whose probabilities differ most, if any differ.

    `what` says what has the probability, as half a sentence.
    """
    worst = max({*found, *expected}, key=lambda a: abs(found.get(a, 0.0) - expected.get(a, 0.0)))
    got, should = found.get(worst, 0.0), expected.get(worst, 0.0)
    if not abs(got - should) <= ROUNDING:
        shown = list(worst) if isinstance(worst, tuple) else worst
        raise WrongAnswer(messages.other_probability(what.format(answer=shown), got, should))
