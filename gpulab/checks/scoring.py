"""How many points a budget is worth at a measured value. The check and the judge use the same rules."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .spec import Budget, Sizes

SLACK = 1e-9  # relative; a limit of 4.0 is met by 4.0


@dataclass(frozen=True)
class Score:
    """One budget at one case. `value` is None where there was nothing to count; `share` is 0 to 1."""

    value: float | None
    limit: float
    naive: float | None
    share: float

    @property
    def met(self) -> bool:
        return self.share == 1.0


def score(budget: Budget, value: float | None, sizes: Sizes) -> Score:
    """The score of a measured value."""
    limit, naive = budget.limit_for(sizes), budget.naive_for(sizes)
    return Score(
        None if value is None else float(value), limit, naive, share(budget.sense, value, limit, naive)
    )


def share(sense: str, value: float | None, limit: float, naive: float | None) -> float:
    """1 when the budget is met, 0 at the naive value or beyond, in between the part of the way done.

    The way is measured on a logarithmic scale, so that each halving counts the same; from or to 0 it is
    linear. Nothing to count (None) costs nothing: it meets an upper limit and misses a lower one.
    """
    if value is None:
        return 1.0 if sense == "<=" else 0.0
    if met(sense, value, limit):
        return 1.0
    if naive is None or naive == limit or not math.isfinite(value):
        return 0.0
    if min(value, limit, naive) > 0:
        value, limit, naive = math.log(value), math.log(limit), math.log(naive)
    done = (value - naive) / (limit - naive)
    return 0.0 if done > 1 else max(0.0, done)


def met(sense: str, value: float, limit: float) -> bool:
    """Does a value keep a limit?"""
    slack = SLACK * abs(limit)
    match sense:
        case "<=":
            return value <= limit + slack
        case ">=":
            return value >= limit - slack
        case "==":
            return abs(value - limit) <= slack
    raise ValueError(f"a budget's sense is <=, >= or ==, not {sense!r}")
