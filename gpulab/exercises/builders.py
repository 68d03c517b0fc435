"""What the labs' modules build alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .cases import of_kinds
from .spec import Exercise, Sizes


def answered(
    topic: str,
    lab: str,
    name: str,
    points: float,
    kinds: tuple[str, ...],
    questions: Callable[[Sizes, np.random.Generator], list[tuple]],
    hints: tuple[str, str, str],
    section: str,
    rtol: float = 0.0,
) -> Exercise:
    """An exercise whose questions have answers and no budgets; a case is a kind of question."""
    return Exercise(
        name=f"{topic}.{name}",
        lab=lab,
        evidence="answered cases",
        correct_points=points,
        cases=of_kinds(*kinds),
        questions=questions,
        hints=hints,
        section=section,
        rtol=rtol,
    )
