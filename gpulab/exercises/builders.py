"""What the labs' modules build alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .cases import of_kinds
from .spec import Budget, Exercise, Prediction, Sizes


def answered(
    topic: str,
    lab: str,
    name: str,
    points: float,
    kinds: tuple[str, ...],
    questions: Callable[[Sizes, np.random.Generator], list[tuple]],
    hints: tuple[str, str, str],
    section: str,
    *budgets: Budget,
    measured: bool = False,
    rtol: float = 0.0,
    by_hand: tuple[str, ...] = (),
) -> Exercise:
    """An exercise of answered cases; a case is a kind of question. Where plans are `measured` there may be
    budgets."""
    return Exercise(
        name=f"{topic}.{name}",
        lab=lab,
        evidence="answered cases",
        measured=measured,
        correct_points=points,
        cases=of_kinds(*kinds),
        questions=questions,
        budgets=budgets,
        hints=hints,
        section=section,
        rtol=rtol,
        by_hand=by_hand,
    )


def prediction(
    topic: str,
    lab: str,
    key: str,
    question: str,
    unit: str,
    answer: float | None = None,
    reason: str = "",
    tolerance: float = 0.0,
) -> Prediction:
    """A question of a predict step, named ``topic.key``; without a topic the key is the whole name."""
    return Prediction(f"{topic}.{key}" if topic else key, lab, question, unit, answer, tolerance, reason)
