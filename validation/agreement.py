"""How well two series of numbers agree. Arithmetic only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np

Pairs = Sequence[tuple[float, float]]  # (modelled, measured)


@dataclass(frozen=True)
class Agreement:
    """Of `pairs` pairs `exact` are equal. Errors are relative to what was measured, None where all of that is
    zero; `ratio` is the median of modelled over measured."""

    pairs: int
    exact: int
    ratio: float | None
    mean_error: float | None
    median_error: float | None


def agreement(pairs: Pairs) -> Agreement:
    """How well pairs agree. What was modelled where nothing was measured is not exact and has no error."""
    something = [(ours, theirs) for ours, theirs in pairs if theirs]
    errors = [abs(ours - theirs) / abs(theirs) for ours, theirs in something]
    return Agreement(
        len(pairs),
        sum(ours == theirs for ours, theirs in pairs),
        median(ours / theirs for ours, theirs in something) if something else None,
        fmean(errors) if errors else None,
        median(errors) if errors else None,
    )


def kendall(pairs: Pairs) -> float | None:
    """Kendall's rank correlation, τ-b: of all two pairs, those in the same order less those in the other one,
    over the geometric mean of those that are no tie in either series. None where one series is constant.

    M. G. Kendall, The treatment of ties in ranking problems, Biometrika 33, 1945.
    """
    if len(pairs) < 2:
        return None
    ours, theirs = np.array(pairs, float).T
    first, second = np.triu_indices(len(pairs), 1)
    a, b = np.sign(ours[first] - ours[second]), np.sign(theirs[first] - theirs[second])
    untied = float(np.count_nonzero(a)) * float(np.count_nonzero(b))
    return float(a @ b) / untied**0.5 if untied else None
