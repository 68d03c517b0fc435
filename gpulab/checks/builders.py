"""What the labs' modules build alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .cases import of_kinds
from .evidence.answered_cases import AnsweredCases
from .spec import Budget, Exercise, Prediction, Sizes

LANES = 32  # of a warp
PER_SECTOR = 8  # 4-byte elements in a sector


def count(sizes: Sizes, name: str = "n") -> int:
    """The size of this name, which is a whole number.

    >>> count({"n": 8, "kind": "ties"})
    8
    """
    return int(sizes[name])


def answered(
    topic: str,
    lab: str,
    name: str,
    points: float,
    kinds: tuple[str, ...],
    questions: Callable[[Sizes, np.random.Generator], list[tuple[Any, ...]]],
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
        correct_points=points,
        cases=of_kinds(*kinds),
        evidence=AnsweredCases(questions, measured, by_hand),
        budgets=budgets,
        hints=hints,
        section=section,
        rtol=rtol,
    )


def sectors_of_rows(rows: int, cols: int) -> int:
    """Sectors of a matrix of 4-byte elements, of which each warp takes 32 neighbours of a row.

    Rows that are no multiple of 8 elements begin within a sector: then a request has up to 5.
    """
    first = np.arange(rows)[:, None] * cols + np.arange(0, cols, LANES)
    last = np.minimum(first + LANES, (np.arange(rows)[:, None] + 1) * cols) - 1
    return int((last // PER_SECTOR - first // PER_SECTOR + 1).sum())


def sectors_of_neighbours(n: int, blocks: int, lanes: int = LANES) -> int:
    """The most sectors of n elements of 4 bytes that warps of some blocks take, each element once.

    `lanes` of a warp are at work; where n is no whole number of rounds each block's part may begin and end
    within a sector.
    """
    if n % 1024 == 0 and lanes == LANES:
        return n // PER_SECTOR
    return (1 + -(-(lanes - 1) // PER_SECTOR)) * (-(-n // lanes) + blocks) if n else 0


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
